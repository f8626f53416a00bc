from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.evaluation import cost as plan
from condense_once.train.cost import StepTime

Run = Callable[..., tuple[int, str, str]]
BUNDLED = "cifar10-real-ipc10"
NET = ("--net", "convnet-d3-w32")


def test_seconds_are_turned_into_patches(run: Run, brief: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plan, "time_step", lambda data, recipe, *_, **__: StepTime(0.001 * min(len(data), recipe.batch), compiled=False)
    )
    run("rank", BUNDLED, "--metric", "random", "-o", "ranked.safetensors")
    words = ("resize", "ranked.safetensors", "--protocol", brief, *NET)
    code, _, err = run(*words, "--seconds", 10_000, "-o", "all.safetensors")
    assert (code, len(load("all.safetensors"))) == (0, 400)
    assert "Training on 400 of 400 patches" in err
    assert run(*words, "--seconds", 2, "--classes", "cat,dog", "--bytes", "20KiB", "-o", "few.safetensors")[0] == 0
    few = load("few.safetensors")
    assert 1 <= len(few) < 80
    assert set(few.labels.tolist()) <= {3, 5}
    assert Path("few.safetensors").stat().st_size <= 20 * 1024


def test_info_shows_what_a_ranked_file_can_be_cut_to(run: Run) -> None:
    assert "resizes to" not in run("info", BUNDLED)[1]
    run("rank", BUNDLED, "--metric", "random", "-o", "ranked.safetensors")
    printed = json.loads(run("info", "ranked.safetensors", "--json")[1])["sizes"]
    assert [(size["ipc"], size["patches"]) for size in printed] == [(1, 40), (2, 80), (5, 200)]
    for size in printed:
        run("resize", "ranked.safetensors", "--ipc", size["ipc"], "-o", "small.safetensors", "--force")
        assert Path("small.safetensors").stat().st_size == size["bytes"]
    assert "images per class" in next(
        line for line in run("info", "ranked.safetensors")[1].splitlines() if "resizes to" in line
    )


def test_info_counts_only_classes_that_have_patches(run: Run) -> None:
    run("rank", BUNDLED, "--metric", "random", "-o", "ranked.safetensors")
    run("resize", "ranked.safetensors", "--classes", "cat,dog", "-o", "pets.safetensors")
    printed = json.loads(run("info", "pets.safetensors", "--json")[1])["sizes"]
    assert [(size["ipc"], size["patches"]) for size in printed] == [(1, 8), (2, 16), (5, 40)]


def test_info_of_a_lopsided_ranking_names_only_sizes_that_it_has(run: Run, pixel_set: CondensedSet) -> None:
    save(pixel_set.take(np.flatnonzero((pixel_set.labels > 0) | (pixel_set.origin % 2 == 0))), "odd.safetensors")
    for balance, sizes in ((("--unbalanced",), [1]), ((), [])):
        run("rank", "odd.safetensors", "--metric", "random", *balance, "-o", "ranked.safetensors", "--force")
        printed = json.loads(run("info", "ranked.safetensors", "--json")[1])["sizes"]
        assert [size["ipc"] for size in printed] == sizes


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--seconds", "5", "--ipc", "1"), "decides the number of patches; leave out"),
        (("--seconds", "5"), "not ranked"),
        (("--ipc", "1", "--total", "3"), "not both; leave one of them out"),
        ((), "There is no budget"),
        (("--classes", ""), "no class ''"),
        (("--classes", "cat\ndog"), "not a comma-separated list of names"),
        (("--classes", '"cat'), "not a comma-separated list of names"),
        (("--ipc", "1", "--protocol", "quick"), "apply to --seconds only"),
        (("--ipc", "1", "--net", "convnet-d3"), "apply to --seconds only"),
        (("--ipc", "1", "--rule", "yoco"), "No such option"),
        (("--bytes", "1" * 5000), "size in bytes"),
        (("--per-class", "twice.json"), "names a class twice"),
        (("--per-class", "deep.json"), "not JSON"),
    ],
)
def test_mistakes_end_in_one_sentence(run: Run, words: tuple[str, ...], complaint: str) -> None:
    Path("twice.json").write_text('{"cat": 1, "cat": 2}')
    Path("deep.json").write_text("[" * 100_000)
    code, out, err = run("resize", BUNDLED, *words, "-o", "x.safetensors")
    assert (code, out) == (2, "")
    (line,) = filter(None, err.splitlines())
    assert complaint in line
    assert not Path("x.safetensors").exists()


@pytest.mark.parametrize(
    "budget",
    [
        ("--ipc", 1),
        ("--total", 33),
        ("--fraction", 0.3),
        ("--bytes", "60KiB", "--lossless"),
        ("--classes", "cat,dog", "--ipc", 5),
        ("--classes", "cat,dog", "--renumber"),
        ("--per-class", "counts.json"),
    ],
)
def test_a_subset_is_valid_and_claims_nothing_that_is_true_of_the_whole_alone(
    run: Run, budget: tuple[str | int | float, ...]
) -> None:
    Path("counts.json").write_text('{"cat": 7, "ship": 2}')
    code, _, err = run("resize", "cifar10-idc-ipc10", *budget, "-o", "part.safetensors")
    assert code == 0, err
    assert run("verify", "part.safetensors")[0] == 0
    part, whole = load("part.safetensors"), load("cifar10-idc-ipc10")
    assert part.provenance["kept"]["of"] == 400
    assert part.provenance["recipe"] == whole.provenance["recipe"]
    assert "accuracy" in whole.provenance
    assert "accuracy" not in part.provenance


def test_a_set_that_is_kept_whole_keeps_its_provenance(run: Run) -> None:
    assert run("resize", "cifar10-idc-ipc10", "--ipc", 10, "-o", "all.safetensors")[0] == 0
    assert load("all.safetensors").provenance == load("cifar10-idc-ipc10").provenance


def test_classes_that_are_left_out_are_counted(run: Run) -> None:
    words = ("resize", "cifar10-idc-ipc10", "--classes", "cat,dog", "-o")
    assert "80 patches of 2 of 10 classes" in run(*words, "part.safetensors")[1]
    assert "80 patches of 2 classes" in run(*words, "renumbered.safetensors", "--renumber")[1]


def test_complaints_are_about_the_file_that_was_named(run: Run) -> None:
    run("resize", "cifar10-idc-ipc10", "--ipc", 1, "-o", "one.safetensors")
    assert "one.safetensors has 1 image per class" in run("resize", "one.safetensors", "--ipc", 5, "-o", "x")[2]
    assert "one.safetensors (40 patches) and cifar10" in run("compare", "one.safetensors", "cifar10-idc-ipc10")[2]


@pytest.mark.parametrize("verb", [("resize", "cifar10-idc-ipc10", "--ipc", 1), ("rank", BUNDLED), ("score", BUNDLED)])
def test_an_ending_of_another_format_is_refused_before_any_work(run: Run, verb: tuple[str | int, ...]) -> None:
    code, _, err = run(*verb, "-o", "out.npz")
    assert (code, "a .safetensors file, not out.npz; export it to write another format" in err) == (2, True)


def test_patches_of_each_class_are_named_on_the_command_line(run: Run, pixel_set: CondensedSet) -> None:
    names = ("ant", "bee, honey", "cat")
    save(replace(pixel_set, classes=names, ranking=Ranking("lbpe", balanced=False)), "ranked.safetensors")
    for written in ('ant=3,"bee, honey=2"', '"bee, honey=2", ant = 3', '{"ant": 3, "bee, honey": 2}'):
        code, _, err = run("resize", "ranked.safetensors", "--per-class", written, "-o", "small.safetensors", "--force")
        assert (code, load("small.safetensors").counts().tolist()) == (0, [3, 2, 0]), err


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("cat=3,dog", "--per-class takes NAME=PATCHES between commas, such as cat=3,dog=5, or a JSON file, not 'dog'"),
        ("cat=some", "not 'cat=some'"),
        ("cat=1,cat=2", "--per-class names 'cat' twice"),
        ('{"cat": 1, "cat": 2}', "--per-class names a class twice"),
        ("{", "--per-class is not JSON"),
        ("counts.json", "There is no file counts.json"),
        ("1,2,3", "--per-class takes NAME=PATCHES between commas, such as cat=3,dog=5, or a JSON file, not '1'"),
    ],
)
def test_wrong_counts_are_refused(run: Run, written: str, complaint: str) -> None:
    code, _, err = run("resize", "cifar10-idc-ipc10", "--per-class", written, "-o", "small.safetensors")
    assert code == 2
    assert complaint in err


def test_the_next_command_works_for_a_set_of_the_users_own_photos(run: Run, pixel_set: CondensedSet) -> None:
    save(replace(pixel_set, ranking=Ranking("lbpe", balanced=False)), "own.safetensors")
    err = run("resize", "own.safetensors", "--total", 6, "-o", "small.safetensors")[2]
    assert "next: condense-once show small.safetensors" in err
    assert "pass a folder of test images: condense-once evaluate … --test FOLDER" in err
    assert run("show", "small.safetensors")[0] == 0
    err = run("resize", "cifar10-idc-ipc10", "--ipc", 1, "-o", "one.safetensors")[2]
    assert "next: condense-once evaluate one.safetensors" in err


def test_floats_are_stored_in_half_the_bytes_on_request(run: Run, soft_set: CondensedSet) -> None:
    save(replace(soft_set, ranking=Ranking("lbpe", balanced=False)), "floats.safetensors")
    code, _, err = run("resize", "floats.safetensors", "--bytes", 900, "--lossless", "-o", "small.safetensors")
    assert code == 2
    assert "raise --bytes to that, or pass --dtype float16 (" in err
    assert run("resize", "floats.safetensors", "--total", 4, "--dtype", "float16", "-o", "half.safetensors")[0] == 0
    assert load("half.safetensors").cells.dtype == np.float16
    words = ("select", "floats.safetensors", "--rule", "random", "--total", 4, "--dtype", "float16")
    assert run(*words, "-o", "some.safetensors")[0] == 0
    assert load("some.safetensors").cells.dtype == np.float16
    assert run("export", "floats.safetensors", "--dtype", "float16", "-o", "half.npz")[0] == 0
    assert np.load("half.npz")["images"].dtype == np.float16
    assert "holds pixels" in run("resize", "cifar10-idc-ipc10", "--ipc", 1, "--dtype", "float16", "-o", "x")[2]


def test_bytes_keep_more_patches_in_fewer_bits_unless_lossless(run: Run) -> None:
    code, out, err = run("resize", "cifar10-idc-ipc10", "--bytes", "30KB", "-o", "coded.safetensors")
    assert (code, "400 patches" in out, "in fewer bits, not exactly: 200 in 2 of 6 layers" in err) == (0, True, True), (
        err
    )
    assert "With --lossless they keep their bits" in err
    assert Path("coded.safetensors").stat().st_size <= 30_000
    assert run("resize", "cifar10-idc-ipc10", "--bytes", "30KB", "--lossless", "-o", "raw.safetensors")[0] == 0
    kept, whole = load("raw.safetensors"), load("cifar10-idc-ipc10")
    np.testing.assert_array_equal(kept.cells, whole.cells[: len(kept)])
    assert len(kept) < 40
    assert run("resize", "coded.safetensors", "--bytes", "6KB", "-o", "less.safetensors")[0] == 0
    assert 40 < len(load("less.safetensors")) < 400


def test_a_layered_file_is_exported_described_cut_and_compared(run: Run) -> None:
    assert run("export", "cifar10-idc-ipc10", "-o", "layered.safetensors")[0] == 0
    assert "codec layered" in run("info", "layered.safetensors")[1]
    Path("cut.safetensors").write_bytes(Path("layered.safetensors").read_bytes()[:40_000])
    code, out, _ = run("verify", "cut.safetensors")
    assert (code, "the beginning of a file, 40,000 of" in out) == (0, True)
    assert "1.000" in run("compare", "layered.safetensors", "cifar10-idc-ipc10")[1]
    assert run("export", "cut.safetensors", "-o", "cut.npz")[0] == 0
