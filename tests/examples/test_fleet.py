"""Every device takes the largest size within both of its budgets, and no more of the file than that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples.fleet.devices import LEVELS, Device, level_of, make_fleet, take_share
from examples.fleet.report import draw, table
from examples.fleet.run import read_log, write_log
from examples.fleet.training import Trained, train

from condense_once import BadOption, load, open_source
from condense_once.device import open_set

SET = "cifar10-idc-ipc10"


@pytest.mark.parametrize(
    ("room", "seconds", "level"),
    [("512KiB", 1e9, 40), ("512KiB", 6, 5), ("64KiB", 1e9, 5), ("16KiB", 1e9, 1), ("1KiB", 1e9, 0), ("512KiB", 0.5, 0)],
)
def test_the_smaller_budget_decides(room: str, seconds: float, level: int) -> None:
    device = Device("one", int(room.removesuffix("KiB")) * 1024, seconds, speed=1000)
    assert level_of(device, open_set(SET)) == level
    share = take_share(SET, device)
    assert (0 if share is None else len(share)) == 10 * level


def test_a_share_is_the_best_patches_of_every_class() -> None:
    share = take_share(SET, Device("one", 64 * 1024, 1e9, 1000))
    assert share is not None
    np.testing.assert_array_equal(share.patches, load(SET).patches()[: len(share)])
    assert np.bincount(share.labels).tolist() == [5] * 10


def test_every_level_has_devices_in_the_fleet_that_is_measured() -> None:
    opened = open_set(SET)
    assert {level_of(device, opened) for device in make_fleet(50)} == {0, *LEVELS}
    with pytest.raises(BadOption, match="at least 1"):
        make_fleet(0)


def test_training_learns_something_and_repeats_to_the_same_accuracy() -> None:
    share, sample = open_set(SET).take(total=100), open_source("cifar10-sample")
    once, again = (train(share, sample, epochs=10, net="convnet-d3-w16", test_images=500) for _ in range(2))
    assert once.accuracy == again.accuracy > 15
    assert once.level == 10


def test_the_log_table_and_figure_of_measured_runs(tmp_path: Path) -> None:
    done = [Trained(level, seed, 20.0 + level + seed, 1.0) for level in LEVELS for seed in range(3)]
    write_log(tmp_path / "log.jsonl", done)
    assert read_log(tmp_path / "log.jsonl") == done
    devices = make_fleet(2)
    text = table({devices[0]: 1, devices[1]: 40}, done, 768, 10)
    assert "| 40 | 300.0 KiB | 1 | 61.0 ± 1.0 | 3 | 1.0 |" in text
    assert "41.5 % if each takes its own, 22.0 % with one size" in text
    pytest.importorskip("matplotlib")
    draw({devices[0]: 1, devices[1]: 0}, done, tmp_path / "fleet.png")
    assert (tmp_path / "fleet.png").stat().st_size > 1000
