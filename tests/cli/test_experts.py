from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.bundled import load

Run = Callable[..., tuple[int, str, str]]
NET = ("--net", "convnet-d1-w8", "--compile", "off", "--folder", "kept", "--epochs", 3)


@pytest.fixture
def images(run: Run, rng: np.random.Generator) -> Path:
    path = Path("tiny.npz")
    np.savez(path, images=rng.integers(0, 256, (40, 3, 8, 8), dtype=np.uint8), labels=np.arange(40) % 2)
    return path


def test_experts_are_planned_trained_and_reused(run: Run, images: Path) -> None:
    code, out, _ = run("plan", "experts", images, "--runs", 2, *NET)
    assert code == 0
    assert "2 of 2 runs to train: about" in out
    assert not Path("kept").exists()
    code, out, err = run("experts", images, "--runs", 2, *NET)
    assert code == 0
    assert "2 of 2 runs to train" in err
    assert "2 runs of 3 epochs with 4 snapshots each" in out
    assert "next: condense-once condense tiny.npz --method tgdd" in err
    _, out, _ = run("plan", "experts", images, "--runs", 2, *NET, "--json")
    assert json.loads(out)["missing"] == 0
    _, out, err = run("experts", images, "--runs", 2, *NET, "--json")
    assert len(json.loads(out)["files"]) == 2
    assert "to train" not in err


def test_a_nested_set_is_made_from_the_experts_that_are_there_and_resized_without_ranking(
    run: Run, images: Path
) -> None:
    assert run("experts", images, *NET)[0] == 0
    small = ("--override", "iterations=2", "--override", "expert_epochs=3", "--override", "experts=1")
    command = ("condense", images, "--method", "tgdd", "--ipc", 2, "--nested", "--experts", "kept", *NET[:4], *small)
    code, _, err = run(*command, "-o", "nested.safetensors")
    assert code == 0
    assert "next: condense-once resize nested.safetensors --ipc 1" in err
    assert len(list(Path("kept").glob("*/run-*.safetensors"))) == 1
    assert run("resize", "nested.safetensors", "--ipc", 1, "-o", "one.safetensors")[0] == 0
    assert load("one.safetensors").counts().tolist() == [4, 4]
    assert "nested: in the order of its images" in run("info", "nested.safetensors")[1]
    assert run("verify", "nested.safetensors")[0] == 0
