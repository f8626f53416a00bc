"""Seconds as a budget: how many patches a network can be trained on in that time, on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from condense_once.condensed.budget import Budget
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import resize
from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.train.hardware import ComputeConfig

MAX_ESTIMATES = 8  # of two seconds each; two or three are usually enough


def patches_within(
    data: CondensedSet,
    seconds: float,
    *,
    protocol: str = "quick",
    net: str | None = None,
    compute: ComputeConfig | None = None,
) -> int:
    """How many patches of a set one training run of the protocol can use within `seconds`, as measured here."""
    from condense_once.evaluation.cost import estimate_evaluation  # late: it needs torch

    def estimate(count: int) -> float:
        part = data.take(slice(count))
        return estimate_evaluation(part, 0, protocol=protocol, net=net, repeats=1, compute=compute).seconds

    if not 0 < seconds < math.inf:
        raise BadOption(f"`seconds` must be above 0 and finite, not {seconds}.")
    count = largest_within(seconds, len(data), estimate)
    if count < np.count_nonzero(data.counts()):
        raise BadOption(
            f"Training on one patch per class of {data.name} by the protocol {protocol!r} takes longer than {seconds:g} s here;"
            " raise `seconds`, or choose a shorter protocol or a smaller network."
        )
    return count


class TimedBudget(NamedTuple):
    budget: Budget
    patches: int  # that fit in the time …
    pool: int  # … out of so many


def within_seconds(
    data: CondensedSet,
    seconds: float,
    budget: Budget | None = None,
    *,
    protocol: str = "quick",
    net: str | None = None,
    compute: ComputeConfig | None = None,
) -> TimedBudget:
    """A budget of as many patches as can be trained on within `seconds`, of the classes and bytes of another budget."""
    budget = budget or Budget()
    check_open_size(budget)
    pool = resize(data, classes=budget.classes) if budget.classes else data
    count = patches_within(pool, seconds, protocol=protocol, net=net, compute=compute)
    return TimedBudget(budget if count == len(pool) else replace(budget, total=count), count, len(pool))


def check_open_size(budget: Budget) -> None:
    """Refuse a budget that leaves nothing for `seconds` to decide."""
    if any(amount is not None for amount in (budget.ipc, budget.total, budget.fraction, budget.per_class)):
        raise BadOption(
            "`seconds` decides the number of patches; leave out `ipc`, `total`, `fraction` and `per_class`."
        )


def largest_within(seconds: float, most: int, estimate: Callable[[int], float]) -> int:
    """The largest count up to `most` whose estimated time is within `seconds`; may be 0.

    Times grow linearly, except for noise and for costs that start at some size: secant steps towards the limit.

    >>> largest_within(10, 100, lambda count: 2 + 0.5 * count)
    16
    """
    count, time = most, estimate(most)
    before, time_before = 0, 0.0
    for _ in range(MAX_ESTIMATES):
        if time <= seconds:
            return count
        slope = (time - time_before) / (count - before)
        line = count - (time - seconds) / slope if slope > 0 else 0
        smaller = int(line) if 0 < line < count else count // 2
        if not smaller:
            return 0
        before, time_before = count, time
        count, time = smaller, estimate(smaller)
    if time <= seconds:
        return count
    return 1 if estimate(1) <= seconds else 0  # better than nothing
