"""Evaluation: train fresh networks on a set, test each at the end, report mean and spread.

Repeats run side by side with one thread each. Threads that share the work of one operation wait for each other at every
layer, and where anything else runs on the machine they wait long; independent trainings do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from statistics import mean, stdev
from threading import Event, Lock

import torch
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.evaluation.inputs import test_inputs, training_inputs
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.train.engine import NetChoice, Trainer, default_net
from condense_once.train.hardware import Compilation, Precision, cores, threads
from condense_once.train.seeds import generator

Progress = Callable[[int, int], None]  # epochs done, of all repeats together


@dataclass(frozen=True)
class Run:
    """One training and its test."""

    seed: int
    accuracy: float  # share of the test images that are right
    per_class: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class Result:
    set_name: str
    patches: int
    protocol: str  # its id
    net: str
    test: str
    runs: tuple[Run, ...]

    @property
    def mean(self) -> float:
        return mean(run.accuracy for run in self.runs)

    @property
    def std(self) -> float:
        """Of the sample; not a number for a single run."""
        return stdev(run.accuracy for run in self.runs) if len(self.runs) > 1 else float("nan")

    @property
    def per_class(self) -> tuple[float, ...]:
        return tuple(mean(values) for values in zip(*(run.per_class for run in self.runs), strict=True))


@dataclass(frozen=True)
class Settings:
    """How an evaluation runs; apart from the protocol, which says what it measures."""

    precision: Precision = "auto"
    compilation: Compilation = "auto"
    device: str = "cpu"
    workers: int | None = None  # trainings side by side; by default one a core


def evaluate(
    data: CondensedSet,
    test: Source,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    seed: int = 0,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Result:
    """Train `repeats` fresh networks on a set and test them on real images. Same seed, same machine: same result."""
    if repeats < 1:
        raise BadOption(f"An evaluation needs at least one repeat, not {repeats}.")
    chosen = PROTOCOLS.get(protocol) if isinstance(protocol, str) else protocol
    job = _Job(data, test, chosen, net or default_net(data.shape), repeats, settings or Settings())
    seeds = [seed + repeat for repeat in range(repeats)]
    return Result(
        set_name=data.name,
        patches=len(data),
        protocol=chosen.id,
        net=job.net if isinstance(job.net, str) else getattr(job.net, "__name__", "custom"),
        test=test.name,
        runs=tuple(_side_by_side(job, seeds, progress)),
    )


class _Job:
    """What all repeats share: inputs prepared once, and how to make a trainer for them."""

    def __init__(
        self, data: CondensedSet, test: Source, protocol: Protocol, net: NetChoice, repeats: int, settings: Settings
    ) -> None:
        self.data, self.protocol, self.net, self.repeats, self.settings = data, protocol, net, repeats, settings
        self.recipe = protocol.recipe(data.size)
        self.inputs = training_inputs(data, normalise_again=protocol.normalise_again)
        self.labels = torch.from_numpy(data.labels)
        self.test_inputs, self.test_labels = test_inputs(data, test)

    @property
    def workers(self) -> int:
        if self.settings.device != "cpu":
            return 1
        return min(self.repeats, self.settings.workers or cores())

    def trainer(self) -> Trainer:
        return Trainer(
            self.net,
            self.data.shape,
            len(self.data.classes),
            self.recipe,
            self.data.space,
            passes=self.recipe.epochs * len(self.data) * self.repeats,
            precision=self.settings.precision,
            compilation=self.settings.compilation,
            device=self.settings.device,
        )

    def run(self, trainer: Trainer, seed: int, tick: Callable[[], None]) -> Run:
        looks = {self.recipe.epochs * look // self.protocol.looks for look in range(1, self.protocol.looks + 1)}
        seen: list[tuple[float, ...]] = []

        def after(done: int) -> None:
            tick()
            if done in looks:
                seen.append(self._test(trainer))

        start = time.perf_counter()
        trainer.fit(
            self.inputs,
            self.labels,
            weights=generator(seed, "evaluate", "weights"),
            batches=generator(seed, "evaluate", "batches"),
            progress=after,
        )
        accuracy, *per_class = max(seen) if self.protocol.report == "best" else seen[-1]
        return Run(seed, accuracy, tuple(per_class), time.perf_counter() - start)

    def _test(self, trainer: Trainer) -> tuple[float, ...]:
        """Accuracy over all test images, then over those of each class."""
        right = (trainer.logits(self.test_inputs).argmax(1) == self.test_labels).double()
        return float(right.mean()), *_by_class(right, self.test_labels, len(self.data.classes))


def _by_class(right: Tensor, labels: Tensor, classes: int) -> list[float]:
    totals = torch.bincount(labels, minlength=classes).clamp(min=1)
    shares: list[float] = (torch.bincount(labels, weights=right, minlength=classes) / totals).tolist()
    return shares


class _Stopped(Exception):
    """Another repeat failed, or the user wants to stop."""


def _side_by_side(job: _Job, seeds: Sequence[int], progress: Progress | None) -> list[Run]:
    workers = job.workers
    stopping, lock = Event(), Lock()
    done, total = 0, len(seeds) * job.recipe.epochs

    def tick() -> None:
        nonlocal done
        if stopping.is_set():
            raise _Stopped
        with lock:
            done += 1
            if progress is not None:
                progress(done, total)

    def share(mine: Sequence[int]) -> list[Run]:
        torch.set_num_threads(max(1, cores() // workers))  # holds for this thread of ours only
        trainer = job.trainer()
        return [job.run(trainer, seed, tick) for seed in mine]

    with threads(torch.get_num_threads()), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(share, seeds[worker::workers]) for worker in range(workers)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            stopping.set()  # also when the user interrupts the waiting
    failures = [error for future in futures if (error := future.exception()) is not None]
    for failure in failures:
        if not isinstance(failure, _Stopped):
            raise failure
    return sorted((run for future in futures for run in future.result()), key=lambda run: run.seed)
