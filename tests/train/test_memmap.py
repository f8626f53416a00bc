from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics import Epochs, MetricConfig, record_scoring_run
from condense_once.train.memmap import new_array


def test_a_run_that_is_kept_in_a_folder_is_the_same_run(pixel_set: CondensedSet, tmp_path: Path) -> None:
    config = MetricConfig(scoring_epochs=2, lbpe_epochs=Epochs.all())
    kept, plain = (
        record_scoring_run(pixel_set, ["lbpe-clean"], config, net="convnet-d3-w32", folder=folder)
        for folder in (tmp_path, None)
    )
    assert kept.dynamics is not None
    assert isinstance(kept.dynamics.error, np.memmap)
    pairs = ((kept.dynamics, plain.dynamics, "training"), (kept.clean_dynamics, plain.clean_dynamics, "clean"))
    for mine, theirs, name in pairs:
        assert mine is not None
        assert theirs is not None
        for part in ("error", "margin", "probability", "correct"):
            np.testing.assert_array_equal(np.load(tmp_path / f"{name}-{part}.npy"), getattr(theirs, part))
            np.testing.assert_array_equal(getattr(mine, part), getattr(theirs, part))


def test_folders_that_cannot_be_used_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="does not exist"):
        new_array((2, 3), np.float32, tmp_path / "no", "error")
    new_array((2, 3), np.float32, tmp_path, "error")
    with pytest.raises(BadOption, match=r"error\.npy already exists"):
        new_array((2, 3), np.float32, tmp_path, "error")
    with pytest.raises(BadOption, match="4,000,000,000,000,000,000 bytes, but only"):
        new_array((10**9, 10**9), np.float32, tmp_path, "huge")
    assert [path.name for path in tmp_path.iterdir()] == ["error.npy"]


def test_disk_space_is_reserved_before_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of zeros takes no disk space until it is written to; by then the disk may be full."""
    new_array((1000, 1000), np.float32, tmp_path, "error")
    assert 512 * (tmp_path / "error.npy").stat().st_blocks >= 4_000_000

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(BadOption, match="There is no disk space for"):
        new_array((2, 3), np.float32, tmp_path, "margin")
    assert not (tmp_path / "margin.npy").exists()
