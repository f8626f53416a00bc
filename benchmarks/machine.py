"""The machine of a measurement, and how candidates are timed on it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from condense_once.train.compute_config import cores
from condense_once.train.hardware import processor


def cpu_model() -> str:
    """The processor's name and the cores this process may use."""
    return f"{processor()}, {cores()} cores"


def best_in_turns(turns: int, *candidates: Callable[[], None]) -> list[float]:
    """The minimum seconds of each after a warm-up; taken in turns, so that other load hits all of them."""
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


class PlainProcess:
    """Runs the plain step of a benchmark, started with the argument `plain`, in its own process.

    In ours, the settings of our package would speed it up, too.
    """

    def __init__(self, file: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, file, "plain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write("step\n")
        self._child.stdin.flush()
        self._child.stdout.readline()

    def close(self) -> None:
        self._child.communicate()


def serve(step: Callable[[], None]) -> None:
    """Run a step for every line of input, and print a line after each."""
    for _ in sys.stdin:
        step()
        print("done", flush=True)
