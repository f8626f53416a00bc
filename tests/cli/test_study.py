from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.studies.conftest import InProcessEngine

from condense_once.cli import study_progress
from condense_once.cli.study_progress import track_study
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.arrays import save_arrays
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.studies import Study, stored_studies
from condense_once.studies import job_claims as claims
from condense_once.studies.engines import EngineOptions
from condense_once.studies.grid import StudyInput, cells_of
from condense_once.studies.progress import StudyProgress
from condense_once.studies.row_digests import digest_of
from condense_once.studies.store import Store, StoredSelection
from condense_once.train.recipe import Recipe

Run = Callable[..., tuple[int, str, str]]
TINY = ("table1", "--set", "tiny.safetensors", "--test", "test.npz", "--size", "1")
STUDY = """
summary = "A small study"
sets = ["tiny.safetensors"]
test = "test.npz"
rules = ["random", "yoco"]
sizes = [1, 2]
nets = ["convnet-d1-w8"]
scored_by = "convnet-d1-w8"
epochs = ["0-1"]
scoring_epochs = 3
protocol = "PROTOCOL"
repeats = 2
scoring_runs = 2
"""


@pytest.fixture
def worker_processes() -> None:
    """Tests that ask for it run their jobs in processes of their own, which take seconds to start; others do not."""


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "worker_processes" not in request.fixturenames:
        monkeypatch.setattr(EngineOptions, "start", lambda _, inputs: InProcessEngine(inputs))


@pytest.fixture
def short() -> Iterator[str]:
    recipe = Recipe(epochs=3, batch=8)
    with PROTOCOLS.registered(Protocol("short-of-a-test", "three epochs", recipe, recipe)) as protocol:
        yield protocol.name


@pytest.fixture(autouse=True)
def files(run: Run, rng: np.random.Generator) -> None:
    """A set and images to test it on, in the empty folder that `run` works in."""
    labels, classes = np.repeat(np.arange(3), 3), ("ant", "bee", "cat")
    images = rng.integers(0, 256, (9, 3, 8, 8), dtype=np.uint8)
    space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
    data = CondensedSet.from_mosaics(images, labels, factor=1, space=space, classes=classes, name="tiny")
    save(data, Path("tiny.safetensors"))
    split = ArraySplit(rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8), np.arange(12) % 3)
    save_arrays(Source("test", classes, (0.5,) * 3, (0.25,) * 3, {"test": split}), Path("test.npz"))


@pytest.fixture
def mine(short: str) -> str:
    Path("mine.toml").write_text(STUDY.replace("PROTOCOL", short))
    return "mine.toml"


def test_a_study_of_ones_own_is_measured_once(run: Run, mine: str, worker_processes: None) -> None:
    code, out, err = run("study", mine, "-o", "mine.md", "-o", "mine.tex", "-o", "mine.csv")
    assert code == 0
    assert "8 runs: 0 known from studies.sqlite, 0 failed, 8 to run, about " in err
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["set", "size", "random", "yoco"]
    assert [line.split()[1] for line in lines[1:]] == ["1", "2", "Avg.", "Diff."]
    assert lines[1].count(" ± ") == 2
    assert Path("mine.md").read_text().startswith("## A small study")
    assert r"\toprule" in Path("mine.tex").read_text()
    with Path("mine.csv").open() as table:
        first = next(csv.DictReader(table))
    assert (first["set"], first["size"], first["column"], first["n"]) == ("tiny", "1", "random", "2")
    code, again, err = run("study", mine)
    assert (code, again) == (0, out)
    assert "to run" not in err


def test_a_study_is_json_for_machines(run: Run, mine: str) -> None:
    code, out, _ = run("study", mine, "--only", "yoco", "--only", "1", "--repeats", 1, "--json")
    printed = json.loads(out)
    assert (code, printed["study"]["rules"]) == (0, ["yoco"])
    (cell,) = printed["cells"]
    assert (cell["rule"], cell["size"], len(cell["kept"])) == ("yoco", "1", 3)
    assert 0 <= cell["result"]["accuracy"] <= 1
    assert cell["result"]["machine"]["torch"]


def test_another_network_can_score_than_is_evaluated(run: Run, mine: str) -> None:
    planned = json.loads(run("plan", "study", mine, "--scored-by", "convnet-d1-w16", "--json")[1])
    usual = json.loads(run("plan", "study", mine, "--json")[1])
    assert run("study", mine, "--scored-by", "convnet-d1-w16")[0] == 0
    left = json.loads(run("plan", "study", mine, "--json")[1])
    assert planned["scoring_runs"] == left["scoring_runs"] == usual["scoring_runs"] == 2  # by another network
    assert left["evaluations"] < usual["evaluations"]  # of rules without scores, which are shared


def test_a_plan_says_what_would_run_and_leaves_everything_as_it_is(run: Run, mine: str) -> None:
    code, out, err = run("plan", "study", mine, "--workers", 2)
    assert (code, err) == (0, "")
    known = "mine: 8 runs, 0 known from studies.sqlite, 0 failed; 2 scoring runs and 8 evaluations to run, about "
    assert out.startswith(known)
    assert out.endswith("in 2 processes.\n")
    assert not Path("studies.sqlite").exists()
    run("study", mine, "--repeats", 1)
    before = Path("studies.sqlite").read_bytes()
    planned = json.loads(run("plan", "study", mine, "--json")[1])
    assert [planned[name] for name in ("runs", "done", "failed", "missing")] == [8, 4, 0, 4]
    assert (planned["scoring_runs"], planned["evaluations"]) == (1, 4)
    assert planned["seconds"] > 0
    assert Path("studies.sqlite").read_bytes() == before
    run("study", mine)
    planned = json.loads(run("plan", "study", mine, "--json")[1])
    assert (planned["missing"], planned["scoring_runs"], planned["evaluations"], planned["seconds"]) == (0, 0, 0, 0)
    assert run("plan", "study", mine)[1].endswith("8 known from studies.sqlite, 0 failed; nothing is left to run.\n")
    assert run("plan", "study", "tabel1")[0] == 2
    assert run("plan", "study", "table6")[0] == 0


def test_for_a_paper_files_have_neither_title_nor_notes(run: Run, mine: str) -> None:
    outputs = [word for name in ("a.md", "a.tex", "b.tex") for word in ("-o", name)]
    run("study", mine, "--only", "1", *outputs[:4], "--bare")
    written = Path("a.md").read_text()
    assert written.startswith("| set | size | random | yoco |")
    assert all(line.startswith("|") for line in written.splitlines())
    tabular = Path("a.tex").read_text()
    assert "caption" not in tabular
    assert "footnotesize" not in tabular
    run("study", mine, "--only", "1", *outputs[4:])
    assert r"\label{tab:mine}" in Path("b.tex").read_text()
    code, _, err = run("study", mine, "--bare")
    assert (code, err) == (2, "error: --bare is about the files that are written; name one with --out.\n")


def test_a_figure_is_drawn(run: Run, mine: str) -> None:
    words = ("fig-easy-hard", "--set", "tiny.safetensors", "--test", "test.npz", "--net", "convnet-d1-w8")
    code, _, err = run("study", *words, "-o", "easy.png")
    assert code == 0
    assert "Wrote easy.png." in err
    assert Path("easy.png").read_bytes().startswith(b"\x89PNG")


def test_status_shows_what_is_missing_and_retry_runs_what_failed(run: Run, mine: str) -> None:
    code, _, err = run("study", "status")
    assert code == 2
    assert "There is no store studies.sqlite" in err
    assert not Path("studies.sqlite").exists()
    run("study", mine, "--repeats", 1)
    _break("where key = (select min(key) from evaluations)")
    code, out, err = run("study", "status")
    assert out.splitlines()[1].split()[0] == "mine"
    assert out.splitlines()[1].split()[3:7] == ["4", "3", "0", "1"]
    assert re.search(r"note: mine: 1 run failed \((random|yoco) at [12], repeat 0\): it broke", err)
    code, _, err = run("study", mine, "--repeats", 1)
    assert code == 1
    assert re.search(r"note: 1 run failed \((random|yoco) at [12], repeat 0\): it broke", err)
    assert "next: condense-once study retry --store studies.sqlite" in err
    run("study", mine, "--repeats", 2, "--only", "random", "--only", "1")  # of which one run stays missing
    code, out, err = run("study", "retry")
    assert "mine: retrying 1 of 4 runs, which failed." in err
    rows = json.loads(run("study", "status", "--json")[1])["studies"]
    assert [(row["done"], row["missing"], row["failed"]) for row in rows] == [(4, 0, 0), (2, 0, 0)]
    assert run("study", "status", "--repeats", 3)[0] == 2
    Path("tiny.safetensors").unlink()
    code, out, err = run("study", "status")
    assert code == 0
    assert "mine cannot be opened: There is no file" in err


def test_a_damaged_result_is_named_and_measured_again(run: Run, mine: str) -> None:
    _, before, _ = run("study", mine, "--only", "yoco", "--only", "1")
    for number in ("0.3", "0.6"):
        with closing(sqlite3.connect("studies.sqlite")) as db, db:
            changed = "json_set(result, '$.accuracy', json(?))"
            db.execute(
                f"update evaluations set result = {changed} where json_extract(facts, '$.repeat') = 1", (number,)
            )
        damaged = "A result in the store is damaged and counts as missing (yoco at 1, repeat 1)."
        _, out, err = run("study", "status")
        assert f"note: mine: {damaged}" in err
        assert out.splitlines()[1].split()[3:7] == ["2", "1", "1", "0"]
        code, again, err = run("study", mine, "--only", "yoco", "--only", "1")
        assert code == 0
        assert f"note: {damaged}" in err
        assert "2 runs: 1 known from studies.sqlite, 0 failed, 1 to run" in err
        assert again.split()[:10] == before.split()[:10]
    assert "damaged" not in run("study", "status")[2]


def test_a_study_whose_description_is_damaged_does_not_hide_the_others(run: Run, mine: str) -> None:
    Path("other.toml").write_text(Path(mine).read_text())
    for name in (mine, "other.toml"):
        run("study", name, "--only", "random", "--only", "1", "--repeats", 1)
    with closing(sqlite3.connect("studies.sqlite")) as db, db:
        db.execute("update studies set spec = replace(spec, 'mine', 'nine')")
    code, out, err = run("study", "status")
    assert (code, out.splitlines()[1].split()[0]) == (0, "other")
    assert "cannot be opened: its description in the store is damaged; run the study again to restore it." in err
    run("study", mine, "--only", "random", "--only", "1", "--repeats", 1)
    code, out, err = run("study", "status")
    assert sorted(line.split()[0] for line in out.splitlines()[1:]) == ["mine", "other"]
    assert "damaged" not in err


def test_two_studies_never_look_alike_in_the_status(run: Run, mine: str) -> None:
    words = ("--only", "random", "--only", "1", "--store", "s.sqlite")
    for name in ("one", "other"):
        shutil.copy("tiny.safetensors", f"{name}.safetensors")
        run("study", mine, "--set", f"{name}.safetensors", *words, "--repeats", 1)
    run("study", mine, "--set", "other.safetensors", *words, "--repeats", 2)
    _, out, _ = run("study", "status", "--store", "s.sqlite")
    assert [re.split(" {2,}", line)[:2] for line in out.splitlines()[1:]] == [
        ["mine", "one.safetensors"],
        ["mine (repeats 1)", "other.safetensors"],
        ["mine (repeats 2)", "other.safetensors"],
    ]
    rows = json.loads(run("study", "status", "--store", "s.sqlite", "--json")[1])["studies"]
    assert [(row["study"], row["variant"]) for row in rows] == [
        ("mine", ""),
        ("mine", "repeats 1"),
        ("mine", "repeats 2"),
    ]
    assert rows[0]["sets"] == str(Path("one.safetensors").resolve())
    Path("deep").mkdir()
    shutil.copy("tiny.safetensors", "deep/one.safetensors")
    run("study", mine, "--set", "deep/one.safetensors", *words, "--repeats", 1)
    _, out, _ = run("study", "status", "--store", "s.sqlite")
    assert re.split(" {2,}", out.splitlines()[-1])[1] == str(Path("deep/one.safetensors").resolve())


def test_without_a_terminal_a_study_prints_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(study_progress, "monotonic", lambda: clock[0])
    with track_study("mine") as report:
        for clock[0], done, failed in (
            (1, 0, 0),
            (31, 0, 0),
            (32, 1, 0),
            (36, 1, 0),
            (37, 1, 0),
            (70, 3, 1),
            (71, 9, 1),
        ):
            report(StudyProgress(done, failed, total=10, work_done=done, work_left=10 - done - failed))
    assert capsys.readouterr().err.splitlines() == [
        "mine: 0 of 10 runs done",
        "mine: 1 of 10 runs done, about 5 min 24 s left",
        "mine: 3 of 10 runs done, 1 failed, about 2 min 20 s left",
    ]


def test_a_study_that_only_scores_counts_no_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(study_progress, "monotonic", lambda: clock[0])
    with track_study("curves") as report:
        for clock[0], work in ((31, 0.0), (70, 5.0)):
            report(StudyProgress(0, 0, total=0, work_done=work, work_left=20 - work))
    assert capsys.readouterr().err.splitlines() == [
        "curves: 0% of scoring done",
        "curves: 25% of scoring done, about 3 min 30 s left",
    ]


def test_the_status_of_a_store_that_cannot_be_written_is_shown(
    run: Run, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path("store")
    folder.mkdir()
    store = folder / "s.sqlite"
    run("study", mine, "--only", "random", "--only", "1", "--repeats", 1, "--store", store)
    store.chmod(0o444)
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # permissions do not hold for root
        monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    code, out, err = run("study", "status", "--store", store)
    assert (code, err) == (0, "")
    assert out.splitlines()[1].split()[3:7] == ["1", "1", "0", "0"]
    assert list(folder.iterdir()) == [store]
    folder.chmod(0o755)


def test_the_errors_of_a_study_stay_recorded_until_it_is_retried(
    run: Run, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("other.toml").write_text(Path(mine).read_text().replace('"random", "yoco"', '"random-balanced"'))
    for name in (mine, "other.toml"):
        run("study", name, "--repeats", 1, "--only", "1")
    _break()

    def stop(*given: object, **named: object) -> None:
        raise BadOption("no more")

    with monkeypatch.context() as patch:
        patch.setattr(stored_studies, "run_with", stop)
        assert run("study", "retry")[0] == 2
    rows = json.loads(run("study", "status", "--json")[1])["studies"]
    assert [(row["study"], row["missing"], row["failed"]) for row in rows] == [("mine", 2, 0), ("other", 0, 1)]


def test_what_fails_again_is_an_exit_code_with_its_reason(run: Run, mine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("study", mine, "--repeats", 1, "--only", "1")
    _break()

    def fail(_: object, study: Study, inputs: dict[str, StudyInput], store: Store, **named: object) -> None:
        for cell in cells_of(study, inputs):
            selection = store.selection(cell.key)
            assert isinstance(selection, StoredSelection)
            store.add_evaluation(selection.evaluation_key, {}, "it broke again", work=1.0, seconds=1.0)

    monkeypatch.setattr(stored_studies, "run_with", fail)
    code, _, err = run("study", "retry")
    assert code == 1
    assert "note: mine: 2 runs failed (random at 1, repeat 0; yoco at 1, repeat 0): it broke again" in err


def test_if_all_failed_the_reasons_come_before_the_complaint_that_nothing_can_be_drawn(run: Run, mine: str) -> None:
    words = ("fig-turning-point", "--set", "tiny.safetensors", "--test", "test.npz", "--net", "convnet-d1-w8")
    words = (*words, "--size", "50%", "--only", "yoco", "--repeats", "1", "--protocol", "short-of-a-test")
    assert run("study", *words)[0] == 0
    _break()
    code, _, err = run("study", *words, "-o", "a.png")
    assert code == 2
    lines = [line.split(":")[0] for line in err.splitlines()]
    assert "note: 1 run failed (yoco at 50 %, repeat 0): it broke" in err
    assert lines[-2:] == ["next", "error"]


def test_the_next_command_is_the_one_that_was_typed_and_where_to_draw(run: Run, mine: str) -> None:
    Path("mine.toml").write_text(Path(mine).read_text() + 'shown = "balance"\n')
    code, _, err = run("study", "mine.toml", "--only", "random", "--only", "2", "--repeats", 1, "--store", "a b.sqlite")
    assert code == 0
    assert err.splitlines()[-1] == (
        "next: condense-once study mine.toml --only random --only 2 --repeats 1 --store 'a b.sqlite' --out mine.png"
    )


def test_sizes_and_the_length_of_scoring_runs_may_be_others_than_the_studys(run: Run, mine: str) -> None:
    words = ("--size", "3", "--size", "all", "--scoring-epochs", 4, "--only", "yoco", "--repeats", 1)
    code, out, _ = run("study", mine, *words, "--json")
    printed = json.loads(out)
    assert code == 0
    assert (printed["study"]["sizes"], printed["study"]["scoring_epochs"]) == (["3", "100 %"], 4)
    assert [len(cell["kept"]) for cell in printed["cells"]] == [9, 9]
    _, _, err = run("study", mine, *words)
    assert "Scored by 1 run of 4 epochs of convnet-d1-w8 in " in err


def test_epochs_of_lbpe_may_be_others_than_the_studys(run: Run, mine: str) -> None:
    words = ("--lbpe-epochs", "1-1", "--only", "yoco", "--only", "1", "--repeats", 1, "--json")
    code, out, _ = run("study", mine, *words)
    assert code == 0
    assert json.loads(out)["study"]["epochs"] == ["1-1"]
    _, _, err = run("study", "status", "--lbpe-epochs", "1-1")
    assert "leave out the options of a single study" in err


def test_rules_may_be_others_than_the_studys(run: Run, mine: str) -> None:
    code, out, _ = run("study", mine, "--rule", "ssp-fixed", "--rule", "yoco", "--size", "1", "--repeats", 1)
    assert code == 0
    assert "ssp-fixed" in out
    assert "random" not in out
    _, _, err = run("study", mine, "--rule", "yocoo")
    assert "There is no rule 'yocoo'" in err


def test_a_study_of_scores_is_done_once_they_are_there(run: Run, mine: str) -> None:
    words = ("fig-easy-hard", "--set", "tiny.safetensors", "--test", "test.npz", "--net", "convnet-d1-w8")
    run("study", *words, "-o", "easy.png")
    (row,) = json.loads(run("study", "status", "--json")[1])["studies"]
    assert (row["runs"], row["done"], row["missing"], row["failed"]) == (1, 1, 0, 0)


def test_a_study_in_another_folder_is_about_the_files_there(run: Run, mine: str) -> None:
    Path("deep").mkdir()
    for name in ("tiny.safetensors", "test.npz", mine):
        Path(name).rename(Path("deep", name))
    code, out, _ = run("study", "deep/mine.toml", "--only", "random", "--only", "1", "--repeats", 1)
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["tiny", "1"]
    assert run("study", "status")[0] == 0


def test_retry_runs_what_failed_of_every_study(run: Run, mine: str) -> None:
    other = Path(mine).read_text().replace('"random", "yoco"', '"random-balanced"')
    Path("other.toml").write_text(other)
    for name in (mine, "other.toml"):
        run("study", name, "--repeats", 1, "--only", "1")
    _break()
    _, _, err = run("study", "retry")
    assert "mine: retrying 2 of 2 runs, which failed." in err
    assert "other: retrying 1 of 1 run, which failed." in err
    rows = json.loads(run("study", "status", "--json")[1])["studies"]
    assert [(row["done"], row["failed"]) for row in rows] == [(2, 0), (1, 0)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tabel1",), "did you mean 'table1'"),
        (("nothing.toml",), "There is no file nothing.toml"),
        (("table1", "--only", "yocoo"), "no rule, size or network 'yocoo'; it has random"),
        (("table1", "--set", "none.safetensors"), "There is no file none.safetensors"),
        (("table1", "-o", "table.png"), "table1 is a table"),
        (("table1", "-o", "table.doc"), "table.doc"),
        (("fig-easy-hard",), "--out fig-easy-hard.png"),
        (("table1", "--protocol", "slow"), "'slow' among the protocols"),
        (
            ("table1", "--address", "1.2.3.4:5", "--set", "tiny.safetensors", "--test", "test.npz", "--only", "1"),
            "that of a Ray cluster",
        ),
        (("table1", "--set", "tiny.safetensors", "--test", "test.npz", "--size", "5"), "fewer than 15"),
        ((*TINY, "--net", "nope"), "nope"),
        ((*TINY, "--device", "nodev"), "There is no device 'nodev' here"),
        ((*TINY, "--device", "nodev", "--engine", "ray"), "cpu or cuda"),
        ((*TINY, "--workers", "2", "--engine", "ray"), "A Ray cluster runs one job per CPU"),
        (("table1", "--set", "tiny.safetensors", "--test", "cifar10-sample"), "pass another --test"),
        ((*TINY, "--scoring-epochs", "5"), "raise --scoring-epochs"),
        ((*TINY, "-o", "a.md", "-o", "./a.md"), "a.md would be written twice"),
        (("table6", "-o", "a.png"), "table6 is a table"),
        (("fig-easy-hard", "-o", "x.md"), "fig-easy-hard is a figure"),
        (("fig-easy-hard", "--size", "1", "-o", "x.png"), "leave out --size"),
        (("status", "--scoring-epochs", "3"), "leave out the options of a single study"),
        (("retry",), "There is no store studies.sqlite"),
        (("table1", "--store", "no/where.sqlite", "--test", "cifar10-sample"), "does not exist"),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(run: Run, words: tuple[str, ...], expected: str) -> None:
    code, out, err = run("study", *words)
    assert (code, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1
    assert not Path("studies.sqlite").exists()


def test_the_papers_numbers_stand_beside_ours_with_their_source(run: Run, short: str) -> None:
    words = ("--protocol", short, "--repeats", 1, "--only", "random", "--only", "1", "--test", "cifar10-sample")
    words = (*words, "--set", "cifar10-real-ipc10", "--with-paper")
    code, out, err = run("study", "table1", *words)
    assert code == 0
    assert "(paper 28.2)" in out
    assert "quoted from He, Xiao and Zhou" in err
    assert "compared with the paper's IDC sets" in err
    assert "may differ from the paper's" in err
    _, out, err = run("study", "table1", *words, "--net", "convnet-d1-w8")
    assert "paper" not in out
    assert "The paper has no numbers for these sets, sizes, rules and networks." in err


def test_what_metrics_require_is_printed_and_written_without_measuring(run: Run) -> None:
    code, out, _ = run("study", "table6", "-o", "needs.md", "-o", "needs.tex", "-o", "needs.csv", "-o", "needs.parquet")
    assert code == 0
    assert "| lbpe | – | yes | early | yes |" in Path("needs.md").read_text().splitlines()
    assert "lbpe,–,yes,early,yes" in Path("needs.csv").read_text().splitlines()
    assert r"\toprule" in Path("needs.tex").read_text()
    assert any(line.split()[0] == "lbpe" for line in out.splitlines())
    assert Path("needs.parquet").read_bytes().startswith(b"PAR1")
    rows = json.loads(run("study", "table6", "--json")[1])
    required = {"metric": "lbpe", "model": "–", "training dynamics": "yes", "training": "early", "label": "yes"}
    assert required in rows
    assert not Path("studies.sqlite").exists()


# The verb in a process of its own, with a protocol of 20 epochs or endless ones. {setup} runs before it.
PROCESS = """
import os, sys, time
from pathlib import Path
from condense_once.cli import main
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.studies.store import Store
from condense_once.train import cost
from condense_once.train.recipe import Recipe

if __name__ == "__main__":
    cost.MEASURE = 0.0
    for name, epochs in (("brief", 20), ("endless", 10**6)):
        PROTOCOLS.add(Protocol(name, "of a test", Recipe(epochs=epochs, batch=8), Recipe(epochs=epochs, batch=8)))
    add = Store.add_evaluation
    {setup}
    main()
"""
HANG = """
    def add_and_hang(store, *given, **named):
        add(store, *given, **named)
        with Path("evaluated.txt").open("a") as out:
            out.write("one\\n")
        while len(Path("evaluated.txt").read_text().split()) == 2:
            time.sleep(60)
    Store.add_evaluation = add_and_hang
"""
COUNT = """
    def add_and_count(store, key, *given, **named):
        with Path("evaluated.txt").open("a") as out:
            out.write(f"{key}\\n")
        add(store, key, *given, **named)
    Store.add_evaluation = add_and_count
    print("ready", flush=True)
    sys.stdin.readline()
"""


def process(setup: str, protocol: str) -> list[str]:
    """The words of a command that runs the small study with one worker."""
    Path("mine.toml").write_text(STUDY.replace("PROTOCOL", protocol))
    Path("process.py").write_text(PROCESS.replace("{setup}", setup.strip()))
    return [sys.executable, "process.py", "study", "mine.toml", "--workers", "1", "--compile", "off"]


def test_a_study_that_is_killed_loses_only_what_was_under_way(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed while its second evaluation is stored and its third runs."""
    words = process(HANG, "brief")
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as killed:
        _wait_for(lambda: _count("evaluations") == 2, killed)
        (worker,) = _children(killed.pid)
        killed.send_signal(signal.SIGKILL)
    _wait_for(lambda: not Path(f"/proc/{worker}").exists())  # it ends with its parent
    assert _count("evaluations") == 2
    assert _count("claims") > 0, "nobody released them"
    monkeypatch.setattr(claims, "EXPIRY", 0.1)
    recipe = Recipe(epochs=20, batch=8)
    with PROTOCOLS.registered(Protocol("brief", "of a test", recipe, recipe)):
        code, out, err = run("study", "mine.toml", "--compile", "off")
    assert code == 0
    assert "2 known from studies.sqlite, 0 failed, 6 to run" in err
    assert "(1 of 2)" not in out


def test_control_c_ends_a_study_at_once_and_keeps_what_is_known(run: Run) -> None:
    setup = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    words = process(setup, "endless")
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
    ) as interrupted:
        _wait_for(lambda: _count("evidence") == 2, interrupted)  # then evaluations run, which never end
        os.killpg(interrupted.pid, signal.SIGINT)  # as a terminal does
        out, err = interrupted.communicate(timeout=300)
    assert (interrupted.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "stopped"
    assert "Traceback" not in err
    assert (_count("evidence"), _count("claims")) == (2, 0)


def test_two_processes_share_a_study_and_measure_nothing_twice(run: Run) -> None:
    words, pipe = process(COUNT, "brief"), subprocess.PIPE
    with (
        subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as one,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as other,
    ):
        for each in (one, other):
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in (one, other):
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        tables = [each.communicate(timeout=300)[0] for each in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0)
    assert tables[0] == tables[1]
    evaluated = Path("evaluated.txt").read_text().split()
    assert len(evaluated) == len(set(evaluated)) == _count("evaluations") == 8
    assert "(1 of 2)" not in tables[0]


def _break(which: str = "") -> None:
    """As if evaluations, by default all of them, had failed."""
    with closing(sqlite3.connect("studies.sqlite")) as db, db:
        for key, facts, _, _, *others, _ in db.execute(f"select * from evaluations {which}").fetchall():
            row = (key, facts, None, "it broke", *others)
            db.execute(
                "replace into evaluations values (?, ?, ?, ?, ?, ?, ?, ?)", (*row, digest_of("evaluations", row))
            )


def _wait_for(true: Callable[[], bool], process: subprocess.Popen[str] | subprocess.Popen[bytes] | None = None) -> None:
    """Until something is true, which it should soon be, while a process runs."""
    deadline = time.monotonic() + 300
    while not true():
        assert process is None or process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _children(parent: int) -> list[int]:
    """Processes that work for another, but for the one that looks after shared memory."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            words = status.parent.joinpath("cmdline").read_text()
            if f"PPid:\t{parent}\n" in status.read_text() and "spawn_main" in words:
                found.append(int(status.parent.name))
    return found


def _count(table: str) -> int:
    """Rows of a table of the store, also before it is made."""
    if not Path("studies.sqlite").exists():
        return 0
    with closing(sqlite3.connect("studies.sqlite", timeout=60)) as db:
        try:
            return int(db.execute(f"select count(*) from {table}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0
