"""Seconds as a budget: how many patches can be trained on in so long, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.train.hardware import ComputeConfig

PLANS = 8  # at most, of two seconds each; two or three do as a rule


def patches_within(
    data: CondensedSet,
    seconds: float,
    *,
    protocol: str = "quick",
    net: str | None = None,
    compute: ComputeConfig | None = None,
) -> int:
    """How many patches of a set one training of the protocol gets through in so many seconds, by a measurement."""
    from condense_once.evaluation.cost import estimate_evaluation  # late: it needs torch

    def planned(count: int) -> float:
        part = data.take(slice(count))
        return estimate_evaluation(part, 0, protocol=protocol, net=net, repeats=1, compute=compute).seconds

    if not seconds > 0:
        raise BadOption(f"A time to train in is above 0 seconds, not {seconds}.")
    count = most_within(seconds, len(data), planned)
    if count < np.count_nonzero(data.counts()):
        raise BadOption(
            f"Training on one patch per class of {data.name} by the protocol {protocol!r} takes longer than {seconds:g} s here;"
            " allow more, or choose a shorter protocol or a smaller network."
        )
    return count


def most_within(seconds: float, most: int, planned: Callable[[int], float]) -> int:
    """The largest count up to `most` for which no more than these seconds are planned, perhaps 0.

    Plans grow in a straight line, but for noise and for what starts at some size: each next count is where the line through the
    last two reaches the limit.

    >>> most_within(10, 100, lambda count: 2 + 0.5 * count)
    16
    """
    count, time = most, planned(most)
    before, time_before = 0, 0.0
    for _ in range(PLANS):
        if time <= seconds:
            return count
        slope = (time - time_before) / (count - before)
        line = count - (time - seconds) / slope if slope > 0 else 0
        smaller = int(line) if 0 < line < count else count // 2
        if not smaller:
            return 0
        before, time_before = count, time
        count, time = smaller, planned(smaller)
    if time <= seconds:
        return count
    return 1 if planned(1) <= seconds else 0  # better than nothing
