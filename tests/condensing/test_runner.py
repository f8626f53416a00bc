from __future__ import annotations

import errno
import json
import math
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from condense_once.condensed.bundled import load
from condense_once.condensed.file import SetFile, save
from condense_once.condensed.mosaic import encode
from condense_once.condensed.set import CondensedSet
from condense_once.condensing import CONDENSERS, callbacks, runner
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.checkpoint import Checkpoint, load_checkpoint
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.distributed import is_primary
from condense_once.condensing.matching import time_budget
from condense_once.condensing.matching.class_step import ClassStep
from condense_once.condensing.matching.loop import MatchingCondenser
from condense_once.condensing.matching.schedule import Schedule
from condense_once.condensing.runner import condense
from condense_once.condensing.stop_signals import Interrupted
from condense_once.data.source import ArraySplit, Source
from condense_once.data.split import hold_out
from condense_once.errors import BadFile, BadOption, CondenseOnceError, UnknownName
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.train.compute_config import ComputeConfig

NET = "convnet-d1-w8"
ALWAYS = {"compute": ComputeConfig(compilation="off"), "save_every": 0.0}
Short = Callable[[str], dict[str, Any]]


def run(source: Source, method: str | None, overrides: dict[str, Any], **others: Any) -> CondensedSet:
    compute = others.pop("compute", ComputeConfig(compilation="off"))
    given = {"ipc": 2, "factor": 2, "net": NET, **others}
    return condense(source, method=method, overrides=overrides, compute=compute, **given)


class SwitchedOff(Exception):
    """What ends a run in the middle, like a machine that is switched off."""


class switch_off(Callback):  # reads as what it does
    """Ends a run, like a machine that is switched off, once a checkpoint after so many work items is written."""

    def __init__(self, after: int) -> None:
        self._after = after

    def on_checkpoint(self, progress: RunProgress) -> None:
        if progress.done >= self._after:
            raise SwitchedOff


class Log(Callback):
    """Keeps what it is called with, by event."""

    def __init__(self) -> None:
        self.items: list[RunProgress] = []
        self.iterations: list[RunProgress] = []

    def on_item_end(self, progress: RunProgress) -> None:
        self.items.append(progress)

    def on_iteration_end(self, progress: RunProgress) -> None:
        self.iterations.append(progress)


@pytest.mark.parametrize("method", CONDENSERS.names())
@pytest.mark.parametrize("factor", [1, 2])
def test_every_method_brings_its_images_nearer_to_the_real_ones(
    source: Source, method: str, factor: int, short: Short
) -> None:
    overrides = {**short(method), "iterations": 1, "steps": 12}  # one network, so that losses can be compared
    if method == "mtt":  # one kind of student
        overrides = {**short(method), "iterations": 12, "experts": 1, "max_start": 1, "student_batch": 0}
    if method not in ("dm", "mtt", "tgdd"):
        overrides["net_lr"] = 1e-6  # that hardly overrides
    if method == "dream":
        overrides["reselect_every"] = 12  # and always the same real images
    made = run(source, method, {**overrides, "augmentation": "none"}, factor=factor)
    curve = [loss for _, loss in made.provenance["loss"]]
    assert np.mean(curve[-3:]) < np.mean(curve[:3])
    assert made.counts().tolist() == [2 * factor**2] * 3


def test_pixel_sets_are_bytes_and_normalised_ones_floats(source: Source, short: Short) -> None:
    assert run(source, "idc", short("idc")).cells.dtype == np.uint8
    free = run(source, "dm", short("dm"))
    assert (free.space.kind, free.cells.dtype) == ("normalised", np.float32)


def test_floats_are_stored_in_half_the_bytes_on_request_and_pixels_refused_before_the_run(
    source: Source, short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(source, "dm", short("dm"), dtype="float16").cells.dtype == np.float16
    monkeypatch.setattr(MatchingCondenser, "advance", lambda _: pytest.fail("the run began"))
    with pytest.raises(BadOption, match="A set by idc holds pixels, which are stored in 8 bits; leave out `dtype`"):
        run(source, "idc", short("idc"), dtype="float16")


@pytest.mark.parametrize("method", ["idc", "dsa"])
def test_without_networks_the_set_is_its_start_the_first_images_of_each_class(source: Source, method: str) -> None:
    made = run(source, method, {"iterations": 0, "init": "first"})
    for label in range(3):
        rows = np.flatnonzero(source.train.labels == label)[:8]
        expected = encode(source.train.take(rows), 2)
        mosaics = made.take(np.flatnonzero(made.labels == label)).mosaics()[0]
        pixels = mosaics / 255 if method == "idc" else mosaics * 0.25 + 0.5
        assert np.abs(pixels - expected / 255).max() < 1e-6


def test_dream_starts_from_other_images_than_the_first(source: Source) -> None:
    starts = [run(source, method, {"iterations": 0}).cells for method in ("idc", "dream")]
    assert not np.array_equal(*starts)


def test_the_same_seed_makes_the_same_set_and_another_one_another(source: Source, short: Short) -> None:
    first, again, other = (run(source, "idc", short("idc"), seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.cells, again.cells)
    assert not np.array_equal(first.cells, other.cells)


def test_a_run_can_begin_from_a_set_of_another_method(source: Source, short: Short) -> None:
    warm = run(source, "dm", short("dm"))
    begun = run(source, "idc", {"iterations": 0}, init=warm)
    expected = np.rint(np.clip(warm.cells * 0.25 + 0.5, 0, 1) * 255)
    assert np.array_equal(begun.cells, expected.astype(np.uint8))
    assert begun.provenance["recipe"]["init"] == "given"
    with pytest.raises(BadOption, match="cannot initialise this run"):
        run(source, "idc", {}, init=warm, ipc=3)
    recipe = {"recipe": "kornia", "regularisation": 0.1, "source": "tiny"}
    whitened = replace(warm, space=replace(warm.space, kind="zca", zca=recipe))
    with pytest.raises(BadOption, match="is ZCA-whitened"):
        run(source, "idc", {}, init=whitened)
    with pytest.raises(BadOption, match="there is no such set; pass one as `init`"):
        run(source, "idc", {"init": "given"})


def test_a_file_tells_how_it_was_made(source: Source, short: Short, tmp_path: Path) -> None:
    save(run(source, "dream", short("dream"), seed=5), tmp_path / "set.safetensors")
    recorded = SetFile.open(tmp_path / "set.safetensors").header.provenance
    assert recorded["recipe"]["method"] == recorded["method"] == "dream"
    assert recorded["recipe"]["steps"] == 3
    assert recorded["config"]["seed"] == 5
    assert [step for step, _ in recorded["loss"]] == [1, 2, 3, 4, 5, 6]
    assert recorded["seconds"] > 0
    assert set(recorded["versions"]) == {"condense-once", "torch", "python"}


@pytest.mark.parametrize("method", CONDENSERS.names())
@pytest.mark.parametrize("after", [2, 4, 9])  # between classes, in a network update, with the second network
def test_a_run_that_was_interrupted_ends_with_the_same_bits(
    source: Source, method: str, after: int, short: Short, tmp_path: Path
) -> None:
    whole = run(source, method, short(method))
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, method, short(method), checkpoint=path, **ALWAYS, callbacks=[switch_off(after)])
    resumed = run(source, method, short(method), checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, whole.cells)
    assert resumed.provenance["loss"] == whole.provenance["loss"]


@pytest.mark.parametrize("method", CONDENSERS.names())
def test_every_method_makes_nested_sets_that_resume_to_the_same_bits(
    source: Source, method: str, short: Short, tmp_path: Path
) -> None:
    whole = run(source, method, short(method), nested=True)
    assert whole.ranking is not None
    assert whole.ranking.metric == "nested"
    same = np.array_equal(np.sort(whole.cells, 0), np.sort(run(source, method, short(method)).cells, 0))
    assert same == (method == "mdc")  # which is nested anyway
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, method, short(method), nested=True, checkpoint=path, **ALWAYS, callbacks=[switch_off(4)])
    with pytest.raises(BadOption, match="was started with `nested` = true, not null"):
        run(source, method, short(method), checkpoint=path, resume=True)
    assert np.array_equal(
        run(source, method, short(method), nested=True, checkpoint=path, resume=True).cells, whole.cells
    )


def test_a_step_of_a_nested_run_matches_a_prefix_of_the_images(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    step = ClassStep.__call__

    def watch(self: ClassStep, images: Any, real: Any, label: Any, rows: torch.Tensor, params: Any) -> Any:
        assert sorted(rows.tolist()) == [row for row in range(20) if row % 5 < len(rows) // 4]  # cell by cell
        seen.append(len(rows) // 4)
        return step(self, images, real, label, rows, params)

    monkeypatch.setattr(ClassStep, "__call__", watch)
    run(source, "dm", {"iterations": 20, "real_batch": 4}, nested=True, ipc=5)
    assert set(seen) == {1, 2, 5}


def test_bounded_decoding_is_refused_for_a_nested_set(source: Source) -> None:
    with pytest.raises(BadOption, match="decode to be single"):
        run(source, "idc", {"decode": "bound"}, nested=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_run_and_ends_it(
    source: Source, short: Short, tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "run.checkpoint"

    class Ring(Callback):
        def on_item_end(self, progress: RunProgress) -> None:
            if progress.done == 4:
                signal.raise_signal(number)

    with pytest.raises(
        Interrupted, match=r"saved to .*run\.checkpoint; continue with the same command and `resume`"
    ) as end:
        run(source, "idc", short("idc"), checkpoint=path, callbacks=[Ring()])
    assert end.value.exit_code == 128 + number
    resumed = run(source, "idc", short("idc"), checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, run(source, "idc", short("idc")).cells)


def test_a_run_goes_on_with_the_rates_it_began_with_unless_it_is_given_others(
    source: Source, short: Short, tmp_path: Path
) -> None:
    path, rates = tmp_path / "run.checkpoint", {**short("idc"), "net_lr": 0.5, "image_lr": 0.02}
    whole = run(source, "idc", rates)
    with pytest.raises(SwitchedOff):
        run(source, "idc", rates, checkpoint=path, **ALWAYS, callbacks=[switch_off(4)])
    forgotten = {name: value for name, value in rates.items() if name not in ("net_lr", "image_lr")}
    resumed = run(source, "idc", forgotten, checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, whole.cells)
    assert resumed.provenance["recipe"] == whole.provenance["recipe"]


def test_a_run_that_is_lost_when_it_is_told_to_end_says_that_it_was_not_saved(
    source: Source, short: Short, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, good = tmp_path / "run.checkpoint", MatchingCondenser.advance

    def advance(loop: MatchingCondenser) -> float | None:
        loss = good(loop)
        if loop.done == 2:
            loop.velocity[:] = float("nan")
            signal.raise_signal(signal.SIGTERM)
        return loss

    monkeypatch.setattr(MatchingCondenser, "advance", advance)
    with pytest.raises(Interrupted, match=r"without saving, because the state holds NaN; start again, with a smaller"):
        run(source, "idc", short("idc"), checkpoint=path)
    assert not path.exists()
    with pytest.raises(Interrupted, match=r"NaN; resume from .*run\.checkpoint, saved earlier, with a smaller"):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS)
    assert load_checkpoint(path).done == 1


def test_an_evaluation_is_broken_off_when_the_run_is_told_to_end(
    source: Source, short: Short, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from condense_once.condensing import callbacks

    notes: list[str] = []
    evaluate, epochs = callbacks.evaluate, []

    def interrupted(*given: Any, progress: Callable[[int, int], None], **others: Any) -> Any:
        def count(done: int, total: int) -> None:
            epochs.append(done)
            signal.raise_signal(signal.SIGTERM)
            progress(done, total)

        return evaluate(*given, progress=count, **others)

    monkeypatch.setattr(callbacks, "evaluate", interrupted)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Interrupted, match="saved to"):
        run(source, "idc", short("idc"), checkpoint=path, eval_every=1, notify=notes.append)
    assert (notes, epochs) == ([], [1])


def test_held_out_accuracy_reaches_the_other_callbacks(source: Source, short: Short) -> None:
    class Curve(Callback):
        def __init__(self) -> None:
            self.points: list[tuple[int, float]] = []

        def on_evaluation(self, iteration: int, accuracy: float) -> None:
            self.points.append((iteration, accuracy))

    curve, notes, quick = Curve(), list[str](), PROTOCOLS.get("quick")
    with PROTOCOLS.registered(replace(quick, small=replace(quick.small, epochs=1))):
        made = run(source, "idc", short("idc"), eval_every=1, callbacks=[curve], notify=notes.append)
    assert [iteration for iteration, _ in curve.points] == [1, 2]
    assert [note.partition(":")[0] for note in notes] == ["After 1 network", "After 2 networks"]
    assert made.provenance["config"]["images"].startswith("54 ")  # of 60


def test_what_watches_may_fail_without_harm_to_the_run(source: Source, short: Short, tmp_path: Path) -> None:
    said: list[str] = []

    class Fail(Callback):
        def on_run_end(self, progress: RunProgress) -> None:
            raise OSError("No space left on device")

    made = run(source, "dm", short("dm"), callbacks=[Fail()], notify=said.append)
    assert np.array_equal(made.cells, run(source, "dm", short("dm")).cells)
    assert said == ["The run continues, but a callback failed: No space left on device"]


def test_a_place_where_no_checkpoint_can_be_written_is_refused_before_any_work(source: Source, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"The folder .*none does not exist; create it first"):
        run(source, "idc", {}, checkpoint=tmp_path / "none" / "run.checkpoint")


def test_a_checkpoint_belongs_to_what_was_asked_for(source: Source, short: Short, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(1)])
    with pytest.raises(BadOption, match="was started with `seed` = 0, not 1"):
        run(source, "idc", short("idc"), checkpoint=path, resume=True, seed=1)
    with pytest.raises(BadOption, match="was started with `overrides`"):
        run(source, "idc", {**short("idc"), "steps": 4}, checkpoint=path, resume=True)
    with pytest.raises(BadOption, match='was started with `precision` = "float32", not "bfloat16"'):
        run(source, "idc", short("idc"), checkpoint=path, resume=True, compute=ComputeConfig("bfloat16", "off"))
    other = ArraySplit(255 - source.train.take(slice(None)), np.asarray(source.train.labels))
    with pytest.raises(BadOption, match="was started with `images`"):
        run(replace(source, splits={"train": other}), "idc", short("idc"), checkpoint=path, resume=True)
    with pytest.raises(BadOption, match="checkpoint of another run; pass `resume`"):
        run(source, "idc", short("idc"), checkpoint=path)
    with pytest.raises(BadOption, match=r"There is no checkpoint"):
        run(source, "idc", short("idc"), checkpoint=tmp_path / "none", resume=True)


@pytest.mark.parametrize("held_at_first", [False, True])
def test_who_holds_images_back_only_now_or_only_before_is_told_so(
    source: Source, short: Short, tmp_path: Path, held_at_first: bool
) -> None:
    path, kept = tmp_path / "run.checkpoint", hold_out(source)[0]
    first, then = (kept, source) if held_at_first else (source, kept)
    with pytest.raises(SwitchedOff):
        run(first, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(1)])
    with pytest.raises(
        BadOption, match=f"was started {'with' if held_at_first else 'without'} `eval_every`, which holds"
    ):
        run(then, "idc", short("idc"), checkpoint=path, resume=True)


def test_early_lessons_bound_decoding_and_layers_of_our_own_resume_to_the_same_bits(
    source: Source, short: Short, tmp_path: Path
) -> None:
    overrides = {**short("idc"), "pretrain_epochs": 1, "decode": "bound", "max_patches": 5}
    path, compiled = tmp_path / "run.checkpoint", {"compute": ComputeConfig(compilation="on"), "save_every": 0.0}
    whole = run(source, "idc", overrides, net="convnet-d1-w32", **compiled)
    with pytest.raises(SwitchedOff):
        run(
            source,
            "idc",
            overrides,
            net="convnet-d1-w32",
            **compiled,
            checkpoint=path,
            callbacks=[switch_off(3)],
        )
    resumed = run(source, "idc", overrides, net="convnet-d1-w32", **compiled, checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, whole.cells)
    plain = run(source, "idc", {**overrides, "pretrain_epochs": 0}, net="convnet-d1-w32", **compiled)
    assert not np.array_equal(plain.cells, whole.cells)


def test_a_process_alone_is_the_first_whatever_is_left_in_the_environment(
    source: Source, short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
        assert is_primary()
        assert len(run(source, "dm", short("dm"))) == 24


@pytest.mark.parametrize("place", [5, 400, -5])
def test_a_damaged_checkpoint_is_refused(source: Source, short: Short, tmp_path: Path, place: int) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(1)])
    content = bytearray(path.read_bytes())
    content[place] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(CondenseOnceError):
        run(source, "idc", short("idc"), checkpoint=path, resume=True)


def test_a_number_that_was_changed_in_a_checkpoint_is_noticed(source: Source, short: Short, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(3)])
    content = path.read_bytes()
    assert content.count(b'\\"done\\": 3') == 1
    path.write_bytes(content.replace(b'\\"done\\": 3', b'\\"done\\": 2'))
    with pytest.raises(BadFile, match="does not match its checksum"):
        run(source, "idc", short("idc"), checkpoint=path, resume=True)


def test_a_long_curve_is_no_burden_to_a_checkpoint(tmp_path: Path) -> None:
    curve = [(step, float(np.float32(1 / step))) for step in range(1, 600_001)]
    Checkpoint({}, {}, 0, 0.0, curve, [], {}).save(tmp_path / "long.checkpoint")
    assert load_checkpoint(tmp_path / "long.checkpoint").curve == curve


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": {"image_lr": "high"}},
        {"recipe": {"method": "idc", "no such field": 1}},
        {"recipe": {"method": "idc", "augmentation": ["color"]}},
        {"done": -1},
        {"done": 10**9},
        {"arrays": {}},
        {"arrays": {"images": np.zeros((1, 2), np.float32)}},
    ],
)
def test_a_checkpoint_whose_content_makes_no_sense_is_refused(
    source: Source, short: Short, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(1)])
    replace(load_checkpoint(path), **change).save(path)
    with pytest.raises(BadFile, match=r"run\.checkpoint (is damaged|does not fit)"):
        run(source, "idc", short("idc"), checkpoint=path, resume=True)


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(
    source: Source, short: Short, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.checkpoint"
    good = MatchingCondenser.advance

    def advance(loop: MatchingCondenser) -> float | None:
        if loop.done == 5:
            loop.images[:] = float("nan")
        return good(loop)

    monkeypatch.setattr(MatchingCondenser, "advance", advance)
    with pytest.raises(BadOption, match=r"loss of class 'class 0' is NaN or infinite .*smaller image_lr"):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS)
    monkeypatch.undo()
    resumed = run(source, "idc", short("idc"), checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, run(source, "idc", short("idc")).cells)


def test_a_network_that_blows_up_leaves_a_checkpoint_from_which_a_smaller_rate_goes_on(
    source: Source, short: Short, tmp_path: Path
) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(BadOption, match="NaN or infinite"):
        run(source, "idc", {**short("idc"), "net_lr": 1e30}, checkpoint=path, **ALWAYS)
    assert all(np.isfinite(array).all() for array in load_checkpoint(path).arrays.values())
    made = run(source, "idc", {**short("idc"), "net_lr": 0.01}, checkpoint=path, resume=True)
    assert made.provenance["recipe"]["net_lr"] == 0.01
    assert [step for step, _ in made.provenance["loss"]] == [1, 2, 3, 4, 5, 6]


def test_with_another_rate_the_losses_of_the_network_that_is_drawn_anew_are_forgotten(
    source: Source, short: Short, tmp_path: Path
) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(19)])
    found = load_checkpoint(path)  # in the second step of the second network
    assert ([step for step, _ in found.curve], len(found.losses)) == ([1, 2, 3, 4], 1)
    made = run(source, "idc", {**short("idc"), "image_lr": 0.01}, checkpoint=path, resume=True)
    assert [step for step, _ in made.provenance["loss"]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("others", "complaint"),
    [
        (
            {"ipc": 6},
            r"Class 'class 0' of tiny has 20 training images, but 6 .* would be initialised from 24; lower `ipc` or `factor`",
        ),
        ({"ipc": 0}, "`ipc` must be at least 1"),
        ({"factor": 9}, "`factor` 9 leaves no pixels in images of 8×8"),
        (
            {"minutes": 0.0},
            "One step of every class takes at least .* after starting nothing is left of `minutes` 0; allow `minutes` 1 or more",
        ),
        ({"minutes": -1.0}, "`minutes` must be at least zero and finite, not -1"),
        ({"minutes": math.inf}, "`minutes` must be at least zero and finite, not inf"),
        ({"minutes": math.nan}, "`minutes` must be at least zero and finite, not nan"),
        ({"save_every": math.nan}, "`save_every` must be at least zero, not nan"),
        ({"preset": "dm-mnist"}, "belongs to dm, not to idc"),
        ({"init": load("cifar10-real-ipc10")}, "cannot initialise this run"),
        ({"resume": True}, "`resume` needs a `checkpoint`"),
    ],
)
def test_bad_settings_are_refused_before_any_work(source: Source, others: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        run(source, "idc", {}, **others)


def test_unknown_names_are_answered_with_the_nearest(source: Source) -> None:
    with pytest.raises(UnknownName, match="did you mean 'idc'"):
        run(source, "icd", {})
    with pytest.raises(UnknownName, match="did you mean 'idc-svhn'"):
        condense(source, ipc=1, preset="idc-svh")
    with pytest.raises(BadOption, match=r"Pass a `method` .* or a budget of `minutes`"):
        condense(source, ipc=1)


def test_a_time_budget_alone_chooses_the_method(source: Source) -> None:
    assert CondenseConfig.for_source(source, ipc=1, minutes=30).method == "tgdd"
    assert CondenseConfig.for_source(source, ipc=1, minutes=30, method="idc").method == "idc"


def test_a_run_that_resumes_keeps_the_method_of_its_checkpoint(source: Source, short: Short, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(2)])
    resumed = run(source, None, short("idc"), checkpoint=path, resume=True, minutes=0)
    assert resumed.provenance["method"] == "idc"


def test_a_class_without_images_is_named(source: Source) -> None:
    with pytest.raises(BadOption, match="Class 'empty' of tiny has no training images"):
        run(replace(source, classes=(*source.classes, "empty")), "dc", {})


def test_noise_needs_no_more_images_than_one(source: Source, short: Short) -> None:
    assert len(run(source, "dc", {**short("dc"), "iterations": 1}, ipc=30, factor=1)) == 90


def test_grey_images_of_odd_sides_work(make_source: Callable[..., Source], short: Short) -> None:
    made = run(make_source(channels=1, side=7, classes=2), "idc", short("idc"))
    assert made.shape == (1, 7, 7)
    assert made.cells.shape[2:] == (4, 4)


def test_a_network_with_batch_norm_and_one_of_the_users_own_work(source: Source, short: Short, tmp_path: Path) -> None:
    def own(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
        conv, drop, norm = torch.nn.Conv2d(3, 4, 3), torch.nn.Dropout(0.5), torch.nn.BatchNorm2d(4)
        norm.register_buffer("of its own", torch.tensor([0.5, -2.0], dtype=torch.float64))
        return torch.nn.Sequential(conv, drop, norm, torch.nn.Flatten(), torch.nn.Linear(144, classes))

    for net in ("convnet-d1-w8-bn", "convnet-d2-w32", own):
        path = tmp_path / "run.checkpoint"
        whole = run(source, "idc", short("idc"), net=net)
        with pytest.raises(SwitchedOff):
            run(source, "idc", short("idc"), net=net, checkpoint=path, **ALWAYS, callbacks=[switch_off(4)])
        resumed = run(source, "idc", short("idc"), net=net, checkpoint=path, resume=True)
        assert np.array_equal(resumed.cells, whole.cells)
        path.unlink()


def test_a_hundred_classes_cost_a_hundred_steps(make_source: Callable[..., Source]) -> None:
    table = Schedule(iterations=1, pretrain=0, steps=2, classes=100, net_update=3)
    assert table.total == 2 * 100 + 3
    log, overrides = Log(), {"iterations": 1, "steps": 1, "real_batch": 4}
    run(make_source(classes=100, each=4), "dm", overrides, ipc=1, callbacks=[log])
    assert len(log.items) == 100


def test_progress_tells_loss_speed_and_time_left(source: Source, short: Short) -> None:
    log = Log()
    run(source, "idc", short("idc"), callbacks=[log])
    last = log.items[-1]
    assert [progress.done for progress in log.items] == list(range(1, last.total + 1))
    assert last.loss is not None
    assert last.images_per_second > 0
    assert last.seconds_left == 0
    assert [progress.iteration for progress in log.iterations] == [1, 2]


class Clock:
    """A machine on which every look at the clock takes half a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tick: float = 0.5) -> None:
        self.now, self._tick = 0.0, tick
        monkeypatch.setattr(runner, "time", SimpleNamespace(perf_counter=self.read))

    def read(self) -> float:
        self.now += self._tick
        return self.now


def test_minutes_cut_the_recipe_and_say_so(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    said: list[str] = []
    whole = condense(source, ipc=2, method="idc", net=NET, minutes=1, notify=said.append)
    recipe = whole.provenance["recipe"]
    assert recipe["iterations"] * recipe["steps"] < 2000 * 100
    assert len(said) == 1
    assert re.search(rf"cut to \d+ networks? with {recipe['steps']} steps? per class each", said[0])
    assert json.dumps(whole.provenance["config"]["minutes"]) == "1"


def test_a_time_budget_takes_a_narrower_network(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, tick=2)
    said: list[str] = []
    made = condense(source, ipc=1, method="idc", minutes=1, notify=said.append)
    assert made.provenance["config"]["net"] == "convnet-d3-w64"
    assert "The network is convnet-d3-w64" in said[0]


@pytest.mark.parametrize("method", ["idc", "dm"])
def test_a_run_on_a_machine_slower_than_measured_ends_when_the_time_is_up(
    source: Source, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    made = run(source, method, {}, minutes=1)
    assert 60 <= made.provenance["seconds"] <= 66
    assert made.provenance["config"]["minutes"] == 1
    assert len(made) == 24


def test_a_run_on_a_machine_faster_than_measured_goes_on_until_the_time_is_up(
    source: Source, short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = time_budget.ItemTimes(class_step=10.0, net_update=0.1, selection=0.0, network=0.1)
    monkeypatch.setattr(time_budget, "measure", lambda *_: slow)
    Clock(monkeypatch)
    notes: list[str] = []
    overrides = {name: value for name, value in short("idc").items() if name != "iterations"}
    made = run(source, "idc", {**overrides, "steps": 1}, minutes=1, notify=notes.append)
    assert "cut to 1 network with 1 step per" in notes[0]
    assert made.provenance["recipe"]["iterations"] > 1
    assert 60 <= made.provenance["seconds"] <= 66


def test_an_item_that_would_exceed_the_time_by_more_than_half_is_not_started(
    source: Source, short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, tick=0)
    monkeypatch.setattr(MatchingCondenser, "fit_to_time", lambda *_: "")
    advance = MatchingCondenser.advance

    def slow(condenser: MatchingCondenser) -> float | None:
        clock.now += 11
        return advance(condenser)

    monkeypatch.setattr(MatchingCondenser, "advance", slow)
    assert run(source, "dm", {**short("dm"), "iterations": 100}, minutes=1).provenance["seconds"] == 55
    assert run(source, "dm", {**short("dm"), "iterations": 100}, minutes=1.02).provenance["seconds"] == 66


def test_an_evaluation_ends_when_the_time_is_up(
    make_source: Callable[..., Source], short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, tick=1e-6)
    monkeypatch.setattr(MatchingCondenser, "fit_to_time", lambda *_: "")
    epochs: list[int] = []

    def slow(*_: object, progress: Callable[[int, int], None], **__: object) -> None:
        for epoch in range(1000):
            epochs.append(epoch)
            clock.now += 1
            progress(epoch, 1000)

    monkeypatch.setattr(callbacks, "evaluate", slow)
    made = run(make_source(each=40), "dm", {**short("dm"), "iterations": 9}, minutes=1, eval_every=1)
    assert (len(epochs), made.provenance["seconds"]) == (60, 60)


def test_what_comes_before_the_run_counts_towards_its_time(
    source: Source, short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, fitted = Clock(monkeypatch, tick=1e-6), []

    def opened(given: Source) -> Source:
        clock.now += 20  # to decode a folder, say
        return given

    monkeypatch.setattr(runner, "as_source", opened)
    monkeypatch.setattr(MatchingCondenser, "fit_to_time", lambda _, seconds: fitted.append(seconds) or "")
    run(source, "dm", short("dm"), minutes=1)
    run(source, "dm", short("dm"), minutes=1, began=clock.now - 5)  # to start the program
    assert fitted == [pytest.approx(40, abs=0.1), pytest.approx(35, abs=0.1)]


def test_an_unfinished_run_is_written_as_it_is_with_no_minutes_left(
    source: Source, short: Short, tmp_path: Path
) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(4)])
    made = run(source, "idc", short("idc"), checkpoint=path, resume=True, minutes=0, net=None)
    saved = np.rint(load_checkpoint(path).arrays["images"].clip(0, 1) * 255)
    assert np.array_equal(made.mosaics()[0], saved.reshape(-1, 3, 8, 8).astype(np.uint8))
    assert made.provenance["config"]["net"] == NET


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, nothing more can be written."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    return lambda: monkeypatch.setattr(os, "fsync", full)


def test_a_checkpoint_that_cannot_be_written_is_reported_and_the_run_goes_on(
    source: Source, short: Short, tmp_path: Path, full_disk: Callable[[], None]
) -> None:
    full_disk()
    notes: list[str] = []
    made = run(source, "dm", short("dm"), checkpoint=tmp_path / "run.checkpoint", **ALWAYS, notify=notes.append)
    assert np.array_equal(made.cells, run(source, "dm", short("dm")).cells)
    assert notes
    assert set(notes) == {
        f"{tmp_path}/run.checkpoint cannot be written: No space left on device; the run continues and tries again later."
    }
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("saved_before", [True, False])
def test_a_stopped_run_that_cannot_be_saved_says_what_to_do(
    source: Source, short: Short, tmp_path: Path, full_disk: Callable[[], None], saved_before: bool
) -> None:
    path = tmp_path / "run.checkpoint"

    class StopOnAFullDisk(Callback):
        def on_item_end(self, progress: RunProgress) -> None:
            if not saved_before or path.exists():
                full_disk()
                signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted, match="checkpoint cannot be written: No space left on device; free") as caught:
        run(source, "dm", short("dm"), checkpoint=path, **ALWAYS, callbacks=[StopOnAFullDisk()])
    assert caught.value.exit_code == 128 + signal.SIGTERM
    expected = (
        "continue from the one saved earlier, with the same command and `resume`." if saved_before else "start again."
    )
    assert str(caught.value).endswith(f"then {expected}")
    assert path.exists() == saved_before


def test_two_runs_do_not_share_a_checkpoint(source: Source, short: Short, tmp_path: Path) -> None:
    class Second(Callback):
        def on_item_end(self, progress: RunProgress) -> None:
            if progress.done == 1:
                run(source, "dm", short("dm"), checkpoint=tmp_path / "run.checkpoint")

    notes: list[str] = []
    run(source, "dm", short("dm"), checkpoint=tmp_path / "run.checkpoint", callbacks=[Second()], notify=notes.append)
    assert len(notes) == 1
    assert f"Another process is using {tmp_path}/run.checkpoint" in notes[0]
    assert list(tmp_path.iterdir()) == []


def test_parts_of_a_checkpoint_that_a_killed_run_left_are_removed_at_the_start(
    source: Source, short: Short, tmp_path: Path
) -> None:
    left = tmp_path / ".run.checkpoint.0123456789abcdef.part"
    left.write_bytes(b"half")
    run(source, "dm", short("dm"), checkpoint=tmp_path / "run.checkpoint")
    assert not left.exists()


def test_an_array_of_an_impossible_shape_in_a_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    Checkpoint({}, {}, 0, 0.0, [], [], {"images": np.zeros((1,) * 60, np.float32)}).save(path)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    header["images"]["shape"] = [1] * 100
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    with pytest.raises(BadFile, match="its arrays have impossible shapes"):
        load_checkpoint(path)


def test_a_checkpoint_that_names_no_network_is_refused(source: Source, short: Short, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(SwitchedOff):
        run(source, "idc", short("idc"), checkpoint=path, **ALWAYS, callbacks=[switch_off(1)])
    saved = load_checkpoint(path)
    replace(saved, identity={**saved.identity, "net": [1]}).save(path)
    with pytest.raises(BadFile, match=r"is damaged: its net is \[1\], not a name"):
        run(source, "idc", short("idc"), checkpoint=path, resume=True, net=None)
