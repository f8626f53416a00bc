"""`refine` stores a set in few bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.cli.conftest import Run

from condense_once import load


def test_refining_keeps_to_the_bytes_and_moves_cells(run: Run, tmp_path: Path) -> None:
    refined, plain = tmp_path / "refined.safetensors", tmp_path / "plain.safetensors"
    options = ["--steps", "2", "--net", "convnet-d1-w2"]
    code, out, err = run("refine", "cifar10-nested-ipc10", "--bytes", "6KB", *options, "-o", refined)
    assert (code, "of 10 classes" in out) == (0, True), err
    assert refined.stat().st_size <= 6_000
    assert run("resize", "cifar10-nested-ipc10", "--bytes", "6KB", "-o", plain)[0] == 0
    few = min(len(load(refined)), len(load(plain)))
    assert few > 40
    assert (load(refined).cells[:few] != load(plain).cells[:few]).any()
    np.testing.assert_array_equal(load(refined).labels[:few], load(plain).labels[:few])
