"""Evaluation: train fresh networks on a set, test each at the end, report mean and spread.

Repeats run side by side with one thread each. Threads that share the work of one operation wait for each other at every
layer, and where anything else runs on the machine they wait long; independent trainings do not. A single one runs in the
thread that asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from threading import Event, Lock

import torch
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.evaluation.inputs import images_for_testing, source_for_testing, training_images
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.evaluation.result import Result, Run
from condense_once.nets import default_net
from condense_once.train.hardware import ComputeConfig, threads
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import NetChoice, Trainer, net_name

WORKERS = "condense-once-repeats"  # how the threads of repeats are called
Progress = Callable[[int, int], None]  # epochs done, of all repeats together


def evaluate(
    data: CondensedSet,
    test: Source | None = None,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    home: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Train `repeats` fresh networks on a set and test them on real images. Same seed, same machine: same result.

    Without `test`, on the source whose classes the set has, or on the sample of it that comes along, as the result says. `home`
    is where sources are kept, if not in the usual place.
    """
    if repeats < 1:
        raise BadOption(f"An evaluation needs at least one repeat, not {repeats}.")
    chosen = PROTOCOLS.get(protocol) if isinstance(protocol, str) else protocol
    if test is None:
        test, _ = source_for_testing(data, home=home)
    start = time.perf_counter()
    job = _Job(data, test, chosen, net or default_net(data.shape), seed, compute or ComputeConfig(), home)
    runs = tuple(_Repeats(job, repeats, progress).all())
    return Result(
        set_name=data.name,
        patches=len(data),
        protocol=chosen.id,
        net=net_name(job.net),
        test=test.name,
        test_images=len(job.test_labels),
        seed=seed,
        runs=runs,
        seconds=time.perf_counter() - start,
        machine={**asdict(job.compute), "computed_in": job.computed_in, "torch": torch.__version__},
        deviation="sample" if chosen.report == "last" else "population",
    )


class _Job:
    """What all repeats share: inputs prepared once, and how to make a trainer for them."""

    def __init__(
        self,
        data: CondensedSet,
        test: Source,
        protocol: Protocol,
        net: NetChoice,
        seed: int,
        compute: ComputeConfig,
        home: Path | None = None,
    ) -> None:
        self.data, self.protocol, self.net, self.seed, self.compute = data, protocol, net, seed, compute
        self.recipe = protocol.recipe(data, test.name)
        again = protocol.normalise_again
        self.computed_in = compute.computed_in
        self.images, self.labels = training_images(data, normalise_again=again), torch.tensor(data.labels)
        self.test_images, self.test_labels = images_for_testing(data, test, whiten=not again, home=home)

    def trainer(self, check: Callable[[], None]) -> Trainer:
        return Trainer(
            self.net,
            self.data.shape,
            len(self.data.classes),
            self.recipe,
            self.data.space,
            passes=self.recipe.epochs * len(self.data),
            compute=self.compute,
            check=check,
        )

    def run(self, trainer: Trainer, repeat: int, tick: Callable[[], None]) -> Run:
        looks = {self.recipe.epochs * look // self.protocol.looks for look in range(1, self.protocol.looks + 1)}
        seen: list[tuple[float, tuple[float | None, ...]]] = []

        def after(done: int) -> None:
            tick()
            if done in looks:
                seen.append(self._test(trainer))

        start = time.perf_counter()
        trainer.fit(
            self.images,
            self.labels,
            weights=generator(self.seed, Stream.EVALUATION, repeat, Stream.WEIGHTS),
            batches=generator(self.seed, Stream.EVALUATION, repeat, Stream.BATCHES),
            progress=after,
        )
        best = None if self.protocol.report == "last" else max(accuracy for accuracy, _ in seen)
        return Run(repeat, *seen[-1], time.perf_counter() - start, best)

    def _test(self, trainer: Trainer) -> tuple[float, tuple[float | None, ...]]:
        """Accuracy over all test images, and over those of each class."""
        logits = trainer.logits(self.test_images)
        if not torch.isfinite(logits).all():
            raise BadOption(
                f"Training on {self.data.name} diverged: its outputs are no numbers; check its value space."
            )
        right = (logits.argmax(1) == self.test_labels).double()
        return float(right.mean()), _by_class(right, self.test_labels, len(self.data.classes))


def _by_class(right: Tensor, labels: Tensor, classes: int) -> tuple[float | None, ...]:
    totals = torch.bincount(labels, minlength=classes).tolist()
    sums = torch.bincount(labels, weights=right, minlength=classes).tolist()
    return tuple(hits / total if total else None for hits, total in zip(sums, totals, strict=True))


class _Stopped(Exception):
    """Another repeat failed, or the user wants to stop."""


class _Repeats:
    """The repeats of a job on their way: how many epochs are done, and whether they are to stop."""

    def __init__(self, job: _Job, count: int, progress: Progress | None) -> None:
        self._job, self._count, self._progress = job, count, progress
        self._epochs = 0
        self._lock, self._stopping = Lock(), Event()

    def all(self) -> list[Run]:
        workers = self._job.compute.parallel_runs(self._count)
        with threads(self._job.compute.threads):
            if workers == 1:
                # In this thread: a second one would bring OpenMP threads of its own, more than there are cores, and a step
                # of two threads would take half as long again.
                return self._some(range(self._count))
            return self._by_workers(workers)

    def _by_workers(self, workers: int) -> list[Run]:
        pool = ThreadPoolExecutor(workers, thread_name_prefix=WORKERS)
        futures = [pool.submit(self._some, range(worker, self._count, workers)) for worker in range(workers)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            pool.shutdown(wait=False)  # those that compile hear of it late
            raise
        finally:
            self._stopping.set()
        pool.shutdown()
        for failure in (future.exception() for future in futures):
            if failure is not None and not isinstance(failure, _Stopped):
                raise failure
        return sorted((run for future in futures for run in future.result()), key=lambda run: run.repeat)

    def _some(self, repeats: Sequence[int]) -> list[Run]:
        """These repeats, one after another, in the thread that calls."""
        torch.set_num_threads(self._job.compute.threads)  # PyTorch keeps the number for each thread of ours
        trainer = self._job.trainer(self._check)
        return [self._job.run(trainer, repeat, self._tick) for repeat in repeats]

    def _check(self) -> None:
        if self._stopping.is_set():
            raise _Stopped

    def _tick(self) -> None:
        with self._lock:
            self._epochs += 1
            if self._progress is not None:
                self._progress(self._epochs, self._count * self._job.recipe.epochs)
