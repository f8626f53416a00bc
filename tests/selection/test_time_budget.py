from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from condense_once.condensed.budget import Budget
from condense_once.condensed.bundled import load
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.evaluation import cost as plan
from condense_once.selection import time_budget
from condense_once.selection.time_budget import MAX_ESTIMATES, largest_within, patches_within, within_seconds
from condense_once.train.cost import StepTime


@pytest.mark.parametrize(("start", "each"), [(0, 0.5), (3, 0.5), (0.4, 0.01), (30, 0.1)])
@pytest.mark.parametrize("seconds", [0.3, 1, 5, 31, 60, 10_000])
def test_it_is_the_largest_count_that_fits(start: float, each: float, seconds: float) -> None:
    asked: list[int] = []

    def estimate(count: int) -> float:
        asked.append(count)
        return start + each * count

    found = largest_within(seconds, 1, 400, estimate) or 0
    assert found in (0, 400) or estimate(found) <= seconds
    fitting = max(0, min(400, math.floor((seconds - start) / each + 1e-9)))
    assert fitting - 1 <= found <= fitting
    assert len(asked) <= MAX_ESTIMATES + 3


@pytest.mark.parametrize(
    "estimate",
    [
        lambda count: 10 + (20 if count > 100 else 0) + 0.2 * count,  # compiling starts
        lambda count: max(count, 64) * 0.3,  # a batch is never shorter
        lambda count: 0.1 * count * (1 + 0.05 * math.sin(count)),  # noise
    ],
)
def test_what_is_found_fits_whatever_the_estimates(estimate: Callable[[int], float]) -> None:
    for seconds in (1, 15, 25, 50):
        found = largest_within(seconds, 1, 400, estimate)
        assert not found or estimate(found) <= seconds


def test_patches_are_counted_by_a_measurement_of_this_machine(brief: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plan, "time_step", lambda data, recipe, *_, **__: StepTime(0.001 * min(len(data), recipe.batch), compiled=False)
    )
    data = load("cifar10-real-ipc10")

    def within(seconds: float) -> int:
        return patches_within(data, seconds, protocol=brief, net="convnet-d3-w32").patches

    assert within(10_000) == 400
    assert 1 <= within(2) < 400
    with pytest.raises(
        BadOption, match=r"takes about 1.0 s here, longer .* raise `seconds`, .* `protocol` or a narrower `net`"
    ):
        within(1e-6)
    for wrong in (0, -1, math.nan):
        with pytest.raises(BadOption, match="`seconds` must be above 0"):
            within(wrong)


def test_time_for_less_than_one_patch_per_class_is_too_little_and_found_first(
    brief: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, timed = load("cifar10-real-ipc10"), []

    def time_step(part: CondensedSet, *_: object, **__: object) -> StepTime:
        timed.append(len(part))
        return StepTime(1.0, compiled=False)

    monkeypatch.setattr(plan, "time_step", time_step)
    with pytest.raises(BadOption, match=r"one patch per class of cifar10-real-ipc10 .* takes about 1 min 40 s here"):
        patches_within(data, 5, protocol=brief, net="convnet-d3-w32")
    assert timed == [10]


def test_the_slowest_part_of_a_measurement_has_to_fit(brief: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = StepTime(0.01, compiled=False, spread=(0.5, 2.0))
    monkeypatch.setattr(plan, "time_step", lambda *_, **__: step)
    data = load("cifar10-real-ipc10")  # 400 patches: 6.25 batches in each of a hundred epochs, 6.25 s on average
    found = patches_within(data, 6.3, protocol=brief, net="convnet-d3-w32")
    assert 64 < found.patches <= 201
    assert found.seconds[1] <= 6.3
    assert found.seconds[0] == pytest.approx(found.seconds[1] / 4)


def test_seconds_become_a_budget_of_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("cifar10-idc-ipc10")
    monkeypatch.setattr(time_budget, "patches_within", lambda pool, *_, **__: (min(len(pool), 50), (4.0, 5.0)))
    assert within_seconds(data, 5) == (Budget(total=50), 50, 400, (4.0, 5.0))
    pets = Budget(classes=["cat", "dog"], bytes="20KiB")
    assert within_seconds(data, 5, pets)[:3] == (replace(pets, total=50), 50, 80)
    assert within_seconds(data, 5, Budget(classes=["cat"]))[:3] == (Budget(classes=["cat"]), 40, 40)
    for budget in ({"ipc": 1}, {"total": 3}, {"fraction": 0.5}, {"per_class": {"cat": 1}}):
        with pytest.raises(BadOption, match="`seconds` decides the number of patches"):
            within_seconds(data, 5, Budget(**budget))  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_only_finite_times_are_budgets(seconds: float) -> None:
    with pytest.raises(BadOption, match="`seconds` must be above 0 and finite"):
        patches_within(load("cifar10-idc-ipc10"), seconds)
