"""Training runs in parallel, one thread each: they stop together if one fails or the user stops.

The threads of one operation wait for each other at every layer, and longer if the machine is busy; independent runs do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event, Lock
from typing import TypeVar

import torch

from condense_once.progress import Progress
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import threads

WORKERS = "condense-once-runs"  # name of the threads

T = TypeVar("T")
Check = Callable[[], None]  # raises if the run must stop; to be called before every batch


class _Stopped(Exception):
    """Another run failed, or the user stops."""


def run_in_parallel(count: int, compute: ComputeConfig, work: Callable[[Sequence[int], Check], list[T]]) -> list[T]:
    """The results of runs 0 … `count` − 1, in that order; `work` does some of them one after another in its thread."""
    workers, stopping = compute.parallel_runs(count), Event()

    def check() -> None:
        if stopping.is_set():
            raise _Stopped

    def work_on(runs: Sequence[int]) -> list[T]:
        torch.set_num_threads(compute.threads)  # PyTorch keeps the number per thread
        return work(runs, check)

    with threads(compute.threads):
        if workers == 1:
            # In this thread: another one would start its own OpenMP threads, more than there are cores, and a step with two
            # threads would take half as long again.
            return work_on(range(count))
        pool = ThreadPoolExecutor(workers, thread_name_prefix=WORKERS)
        futures = [pool.submit(work_on, range(worker, count, workers)) for worker in range(workers)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            pool.shutdown(wait=False)  # a compiling thread stops late
            raise
        finally:
            stopping.set()
        pool.shutdown()
    for failure in (future.exception() for future in futures):
        if failure is not None and not isinstance(failure, _Stopped):
            raise failure
    results: list[T] = [None] * count  # type: ignore[list-item]
    for worker, future in enumerate(futures):
        results[worker::workers] = future.result()
    return results


class EpochCounter:
    """Counts the epochs of runs in several threads, for a progress callback that sees its calls in order."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress, self._lock = 0, total, progress, Lock()

    def add(self, epochs: int = 1) -> None:
        with self._lock:
            self._done += epochs
            if self._progress is not None:
                self._progress(self._done, self._total)
