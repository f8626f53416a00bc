"""Timing a condenser's work items on this machine, within a part of the time budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

MEASURE_SHARE = 0.1  # of the time budget goes to measuring; what takes longer is measured once
REPEATS = 3  # of each measurement
LONG_ENOUGH = 1.0  # second: what takes longer is measured once


def sample_times(
    work: Callable[[], object], *, repeats: int = REPEATS, deadline: float = math.inf, compiles: bool = False
) -> list[float]:
    """Seconds of each repeat after a warm-up; past the `deadline`, of the warm-up alone, unless it also `compiles`.

    The deadline is a time of `time.perf_counter`.
    """
    times: list[float] = []
    while len(times) <= repeats:
        start = time.perf_counter()
        work()
        end = time.perf_counter()
        times.append(end - start)
        warm = len(times) > 1
        if (end > deadline and (warm or not compiles)) or (warm and times[-1] > LONG_ENOUGH):
            break
    return times[1:] or times
