from __future__ import annotations

import errno
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensing.matching.loop import MatchingCondenser

Run = Callable[..., tuple[int, str, str]]
QUICK = (
    *("--net", "convnet-d1-w8", "--compile", "off", "--override", "iterations=2", "--override", "steps=2"),
    *(
        "--override",
        "real_batch=4",
        "--override",
        "net_batch=8",
        "--override",
        "net_images=8",
        "--override",
        "image_lr=0.05",
    ),
)
OUT = ("-o", "mine.safetensors")


@pytest.fixture
def images(run: Run, rng: np.random.Generator) -> Path:
    """A small source of two classes in the folder the commands are typed in."""
    path = Path("tiny.npz")
    np.savez(path, images=rng.integers(0, 256, (40, 3, 8, 8), dtype=np.uint8), labels=np.arange(40) % 2)
    return path


def tell_to_end(patch: pytest.MonkeyPatch) -> None:
    """Send every run a signal in its fourth tick."""
    advance = MatchingCondenser.advance

    def advance_told(loop: MatchingCondenser) -> float | None:
        if loop.done == 3:
            signal.raise_signal(signal.SIGTERM)
        return advance(loop)

    patch.setattr(MatchingCondenser, "advance", advance_told)


@pytest.mark.parametrize("save_every", ["0", "3"])
def test_a_set_that_cannot_be_written_is_had_again_from_the_last_checkpoint(
    run: Run, images: Path, monkeypatch: pytest.MonkeyPatch, save_every: str
) -> None:
    advance, command = MatchingCondenser.advance, ("condense", images, "--method", "idc", "--ipc", 2, *QUICK, *OUT)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:

        def advance_until_full(loop: MatchingCondenser) -> float | None:
            if loop.done == loop.total - 1:
                patch.setattr(os, "fsync", full)
            return advance(loop)

        patch.setattr(MatchingCondenser, "advance", advance_until_full)
        code, _, err = run(*command, "--save-every", save_every)
    assert code == 2
    again = " with --resume to continue from mine.safetensors.checkpoint" if save_every == "0" else ""
    failed = (
        "error: mine.safetensors cannot be written: No space left on device; free some space, then repeat the command"
    )
    assert f"{failed}{again}." in err.splitlines()
    assert not Path("mine.safetensors").exists()
    if save_every == "0":
        assert run(*command, "--resume")[0] == 0
        assert len(load("mine.safetensors")) == 16


def test_a_picture_that_is_there_already_is_not_drawn_over(run: Run, images: Path) -> None:
    Path("mine.safetensors.png").write_bytes(b"precious")
    code, _, err = run("condense", images, "--ipc", 2, *QUICK, *OUT, "--contact-sheet")
    assert code == 2
    assert "mine.safetensors.png exists already" in err
    assert Path("mine.safetensors.png").read_bytes() == b"precious"


def test_a_source_is_condensed_and_the_next_command_suggested(run: Run, images: Path) -> None:
    code, out, err = run("condense", images, "--method", "idc", "--ipc", 2, *QUICK, *OUT)
    assert code == 0
    assert "mine.safetensors: 16 patches of 2 classes" in out
    assert "next: condense-once rank mine.safetensors" in err
    assert load("mine.safetensors").factor == 2
    assert not Path("mine.safetensors.checkpoint").exists()


def test_json_tells_the_whole_recipe(run: Run, images: Path) -> None:
    code, out, _ = run("condense", images, "--method", "idc", "--ipc", 1, *QUICK, "--json", *OUT)
    assert code == 0
    assert json.loads(out)["provenance"]["recipe"]["image_lr"] == 0.05


def test_a_folder_of_images_of_ones_own_works(run: Run, images: Path, rng: np.random.Generator) -> None:
    from PIL import Image

    for name in ("cats", "dogs"):
        Path("mine", name).mkdir(parents=True)
        for number in range(6):
            Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(f"mine/{name}/{number}.png")
    code, _, err = run("condense", "mine", "--size", 8, "--method", "idc", "--ipc", 1, *QUICK, *OUT)
    assert code == 0, err
    assert load("mine.safetensors").classes == ("cats", "dogs")


def test_a_snapshot_is_drawn_whenever_the_run_is_saved(run: Run, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tell_to_end(monkeypatch)
    code, _, err = run("condense", images, "--method", "idc", "--ipc", 1, *QUICK, "--contact-sheet", *OUT)
    assert code == 128 + signal.SIGTERM
    assert Path("mine.safetensors.png").read_bytes().startswith(b"\x89PNG")
    assert "images/s" in err


def test_a_short_run_has_a_snapshot_too(run: Run, images: Path) -> None:
    run("condense", images, "--method", "idc", "--ipc", 1, *QUICK, "--contact-sheet", *OUT)
    assert Path("mine.safetensors.png").exists()


def test_a_run_that_was_stopped_is_resumed_by_the_same_command(
    run: Run, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("condense", images, "--method", "idc", "--ipc", 1, *QUICK)
    run(*command, "-o", "whole.safetensors")
    with monkeypatch.context() as patch:
        tell_to_end(patch)
        code, _, err = run(*command, *OUT)
    assert code == 128 + signal.SIGTERM
    assert "continue with the same command and --resume" in err
    assert run(*command, *OUT, "--resume")[0] == 0
    assert np.array_equal(load("mine.safetensors").cells, load("whole.safetensors").cells)
    assert not Path("mine.safetensors.checkpoint").exists()
    assert run(*command, "-o", "more.safetensors", "--init", "mine.safetensors")[0] == 0


def test_accuracy_is_measured_on_held_out_training_images(
    run: Run, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from condense_once.evaluation import protocols

    quick = protocols.PROTOCOLS.get("quick")
    short = replace(quick, small=replace(quick.small, epochs=1))
    with protocols.PROTOCOLS.registered(short):
        code, _, err = run("condense", images, "--method", "idc", "--ipc", 1, *QUICK, "--eval-every", 1, *OUT)
    assert code == 0, err
    assert err.count("on held-out training images") == 2
    assert load("mine.safetensors").provenance["config"]["images"].startswith("36 ")  # of 40


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--method", "idc", "--ipc", 30), "lower --ipc or --factor"),
        (("--method", "idc", "--ipc", 1, "--factor", 9), "leaves no pixels"),
        (("--preset", "idc-svh", "--ipc", 1), "did you mean 'idc-svhn'"),
        (("--ipc", 1), "Pass a --method"),
        (("--method", "idc", "--ipc", 1, "--resume"), "no checkpoint mine.safetensors.checkpoint"),
        (("--method", "idc", "--ipc", 1, "--override", "image_lr"), "--override takes NAME=VALUE"),
        (("--method", "idc", "--ipc", 1, "--override", "image_lf=1"), "did you mean 'image_lr'"),
        (("--method", "idc", "--ipc", 1, "--device", "nowhere"), "There is no device 'nowhere'"),
        (
            ("--method", "idc", "--ipc", 1, "--override", "net_weight_decay=-1"),
            "net_weight_decay must be at least zero",
        ),
    ],
)
def test_bad_settings_end_in_one_sentence(run: Run, images: Path, words: tuple[object, ...], complaint: str) -> None:
    code, _, err = run("condense", images, *words, *OUT)
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1
    assert not Path("mine.safetensors").exists()


def test_an_output_that_exists_is_kept(run: Run, images: Path) -> None:
    Path("mine.safetensors").write_text("precious")
    code, _, err = run("condense", images, "--method", "idc", "--ipc", 1, *OUT)
    assert code == 2
    assert "exists already" in err


def test_curves_are_written_for_tensorboard(run: Run, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, int]] = []

    class SummaryWriter:  # as PyTorch's, which wants a package of its own
        def __init__(self, folder: str) -> None:
            assert folder == "tb"

        def add_scalar(self, name: str, value: float, step: int) -> None:
            assert math.isfinite(value)
            written.append((name, step))

        def flush(self) -> None: ...

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=SummaryWriter))
    code, _, err = run("condense", images, "--method", "idc", "--ipc", 1, *QUICK, "--tensorboard", "tb", *OUT)
    assert code == 0, err
    assert [step for name, step in written if name == "loss"] == [1, 2, 3, 4]
    assert [step for name, step in written if name == "images per second"] == [1, 2, 3, 4]


def test_tensorboard_reads_the_curves(run: Run, images: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    code, _, err = run("condense", images, "--method", "idc", "--ipc", 1, *QUICK, "--tensorboard", "tb", *OUT)
    assert code == 0, err
    events = EventAccumulator("tb").Reload()
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3, 4]


def test_tensorboard_that_is_not_installed_is_named(run: Run, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    code, _, err = run("condense", images, "--method", "idc", "--ipc", 1, "--tensorboard", "tb", *OUT)
    assert code == 2
    assert "with the extra 'tensorboard'" in err


def test_a_plan_tells_time_and_memory_and_writes_nothing(run: Run, images: Path) -> None:
    before = sorted(Path().iterdir())
    code, out, _ = run("plan", "condense", images, "--method", "idc", "--ipc", 1, *QUICK)
    assert code == 0
    assert "2 networks with 2 steps per class each: about" in out
    assert "of memory" in out
    code, out, _ = run("plan", "condense", images, "--method", "dm", "--ipc", 1, *QUICK, "--json")
    assert set(json.loads(out)) == {"seconds", "seconds_range", "bytes", "iterations", "steps", "step_seconds"}
    assert sorted(Path().iterdir()) == before


def test_condensers_and_presets_are_listed(run: Run) -> None:
    assert "dream" in run("list", "condensers")[1]
    assert "idc-mnist" in run("list", "presets", "idc*")[1]
