"""What a measurement was made on, and how two ways are timed there."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path


def cpu_model() -> str:
    """The processor's name and the cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} cores"


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
