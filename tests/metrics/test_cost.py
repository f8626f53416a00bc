from __future__ import annotations

import pytest

from condense_once.condensed.bundled import load
from condense_once.metrics import Epochs, MetricConfig
from condense_once.metrics.cost import plan_scoring
from condense_once.train.cost import FORWARD, StepTime
from condense_once.train.hardware import ComputeConfig

NET, PLAIN = "convnet-d3-w32", ComputeConfig(compilation="off")
SETTINGS = MetricConfig(training=30, lbpe=Epochs.all())


def test_time_is_that_of_all_epochs_of_all_runs() -> None:
    data = load("cifar10-real-ipc10", first=80)  # a batch of 64 and one of 16
    plan = plan_scoring(data, ["aum"], SETTINGS, runs=2, net=NET, compute=PLAIN, step=StepTime(0.5, compiled=False))
    assert plan is not None
    assert plan.steps == 2 * 30 * 2
    assert plan.seconds == pytest.approx(2 * 30 * 80 / 64 * 0.5)


def test_clean_passes_take_time_too() -> None:
    data = load("cifar10-real-ipc10", first=64)
    plan = plan_scoring(
        data, ["lbpe", "lbpe-clean"], SETTINGS, net=NET, compute=PLAIN, step=StepTime(0.5, compiled=False)
    )
    assert plan is not None
    assert plan.seconds == pytest.approx(30 * 0.5 * (1 + FORWARD))


def test_what_needs_no_training_needs_no_plan() -> None:
    assert plan_scoring(load("cifar10-real-ipc10", first=10), ["random"], SETTINGS) is None
