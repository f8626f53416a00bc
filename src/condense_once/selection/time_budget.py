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
from condense_once.text import time_range

if TYPE_CHECKING:
    from condense_once.train.compute_config import ComputeConfig

MAX_ESTIMATES = 8  # of two seconds each; two or three are usually enough


class PatchesInTime(NamedTuple):
    patches: int
    seconds: tuple[float, float]  # the estimated time of training on them, from the fastest to the slowest measured


def patches_within(
    data: CondensedSet,
    seconds: float,
    *,
    protocol: str = "quick",
    net: str | None = None,
    compute: ComputeConfig | None = None,
) -> PatchesInTime:
    """How many patches of a set one training run of the protocol can use within `seconds`, as measured here.

    Every count is timed by itself, and counts by the slowest part of its measurement.
    """
    from condense_once.evaluation.cost import estimate_evaluation  # late: it needs torch

    ranges: dict[int, tuple[float, float]] = {}

    def slowest(count: int) -> float:
        part = data.take(slice(count))
        found = estimate_evaluation(part, 0, protocol=protocol, net=net, repeats=1, compute=compute)
        ranges[count] = found.seconds_range
        return ranges[count][1]

    if not 0 < seconds < math.inf:
        raise BadOption(f"`seconds` must be above 0 and finite, not {seconds}.")
    least = int(np.count_nonzero(data.counts()))
    count = largest_within(seconds, least, len(data), slowest)
    if count is None:
        raise BadOption(
            f"Training on one patch per class of {data.name} by the protocol {protocol!r} takes {time_range(*ranges[least])}"
            f" here, longer than {seconds:g} s; raise `seconds`, or choose a shorter `protocol` or a narrower `net`."
        )
    return PatchesInTime(count, ranges[count])


class TimedBudget(NamedTuple):
    budget: Budget
    patches: int  # that fit in the time …
    pool: int  # … out of so many
    seconds: tuple[float, float]  # that training on them is estimated to take


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
    count, taken = patches_within(pool, seconds, protocol=protocol, net=net, compute=compute)
    return TimedBudget(budget if count == len(pool) else replace(budget, total=count), count, len(pool), taken)


def check_open_size(budget: Budget) -> None:
    """Refuse a budget that leaves nothing for `seconds` to decide."""
    if any(amount is not None for amount in (budget.ipc, budget.total, budget.fraction, budget.per_class)):
        raise BadOption(
            "`seconds` decides the number of patches; leave out `ipc`, `total`, `fraction` and `per_class`."
        )


def largest_within(seconds: float, least: int, most: int, estimate: Callable[[int], float]) -> int | None:
    """The largest count from `least` to `most` whose estimated time is within `seconds`; None if even `least` is not.

    Times grow linearly, except for noise and for costs that start at some size: secant steps between a count that fits and
    one that does not, until one fits.

    >>> largest_within(10, 1, 100, lambda count: 2 + 0.5 * count)
    16
    """
    fits, time = least, estimate(least)
    if time > seconds:
        return None
    exceeds, time_above = most, estimate(most)
    if time_above <= seconds:
        return most
    for _ in range(MAX_ESTIMATES):
        if exceeds - fits < 2:
            break
        share = (seconds - time) / (time_above - time)
        count = min(max(int(fits + share * (exceeds - fits)), fits + 1), exceeds - 1)
        found = estimate(count)
        if found <= seconds:
            return count
        exceeds, time_above = count, found
    return fits
