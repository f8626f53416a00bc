"""What a measurement was made on, and how two ways are timed there."""

from __future__ import annotations

import time
from collections.abc import Callable

from condense_once.train.hardware import cores, processor


def cpu_model() -> str:
    """The processor's name and the cores this process may use."""
    return f"{processor()}, {cores()} cores"


def best_in_turns(turns: int, *candidates: Callable[[], None]) -> list[float]:
    """The least seconds of each, once they are warm; taken in turns, so that a busy moment hits all of them."""
    for candidate in candidates:
        for _ in range(3):
            candidate()
    best = [float("inf")] * len(candidates)
    for _ in range(turns):
        for k, candidate in enumerate(candidates):
            start = time.perf_counter()
            candidate()
            best[k] = min(best[k], time.perf_counter() - start)
    return best
