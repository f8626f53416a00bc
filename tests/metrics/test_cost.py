from __future__ import annotations

import pytest

from condense_once.condensed.bundled import load
from condense_once.metrics import Epochs, MetricConfig
from condense_once.metrics.cost import estimate_scoring
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.cost import FORWARD, StepTime

NET, PLAIN = "convnet-d3-w32", ComputeConfig(compilation="off")
CONFIG = MetricConfig(scoring_epochs=30, lbpe_epochs=Epochs.all())


def test_time_is_that_of_all_epochs_of_all_runs() -> None:
    data = load("cifar10-real-ipc10", first=80)  # a batch of 64 and one of 16
    plan = estimate_scoring(data, ["aum"], CONFIG, runs=2, net=NET, compute=PLAIN, step=StepTime(0.5, compiled=False))
    assert plan is not None
    assert plan.steps == 2 * 30 * 2
    assert plan.seconds == pytest.approx(2 * 30 * 80 / 64 * 0.5)


def test_clean_passes_take_time_too() -> None:
    data = load("cifar10-real-ipc10", first=64)
    plan = estimate_scoring(
        data, ["lbpe", "lbpe-clean"], CONFIG, net=NET, compute=PLAIN, step=StepTime(0.5, compiled=False)
    )
    assert plan is not None
    assert plan.seconds == pytest.approx(30 * 0.5 * (1 + FORWARD))


def test_what_needs_no_training_has_no_estimate() -> None:
    assert estimate_scoring(load("cifar10-real-ipc10", first=10), ["random"], CONFIG) is None
