"""Evaluation: train fresh networks on a set, test each at the end, report mean and standard deviation.

Repeats run in parallel with one thread each: the threads of one operation wait for each other at every layer, and longer
if the machine is busy; independent runs do not. A single run uses the calling thread.
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

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.evaluation.inputs import prepare_test_images, resolve_test, training_images
from condense_once.evaluation.protocols import Protocol, as_protocol
from condense_once.evaluation.result import EvaluationRun, Result
from condense_once.nets import NetChoice, default_net, net_name
from condense_once.progress import Progress
from condense_once.train.hardware import ComputeConfig, threads
from condense_once.train.images import DataSpec
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import Trainer

WORKERS = "condense-once-repeats"  # name of the threads that run repeats


def evaluate(
    data: CondensedSet | str | Path,
    test: Source | str | Path | None = None,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    data_dir: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Train `repeats` fresh networks on a set and test them on real images. Same seed, same machine: same result.

    `data` is a set, a path or the name of a bundled set; `test` is a source, a path or a name. By default `test` is the
    source with the set's classes, or its bundled sample if it is not downloaded, as the result notes. `data_dir` is the folder
    of downloaded sources. `progress` counts the epochs of all repeats.
    """
    if repeats < 1:
        raise BadOption(f"An evaluation needs `repeats` of at least 1, not {repeats}.")
    data, protocol = as_set(data), as_protocol(protocol)
    source, note = resolve_test(data, test, data_dir=data_dir)
    start = time.perf_counter()
    job = _Job(data, source, protocol, net or default_net(data.shape), seed, compute or ComputeConfig(), data_dir)
    runs = tuple(_Repeats(job, repeats, progress).run())
    return Result(
        set_name=data.name,
        patches=len(data),
        protocol=protocol.id,
        net=net_name(job.net),
        test=source.name,
        test_images=len(job.test_labels),
        seed=seed,
        runs=runs,
        seconds=time.perf_counter() - start,
        machine={**asdict(job.compute), "computed_in": job.computed_in, "torch": torch.__version__},
        ddof=1 if protocol.report == "last" else 0,
        note=note,
    )


class _Job:
    """What all repeats share: the inputs, prepared once, and how to train and test on them."""

    def __init__(
        self,
        data: CondensedSet,
        test: Source,
        protocol: Protocol,
        net: NetChoice,
        seed: int,
        compute: ComputeConfig,
        data_dir: Path | None = None,
    ) -> None:
        self.data, self.protocol, self.net, self.seed, self.compute = data, protocol, net, seed, compute
        self.recipe = protocol.recipe(data, test.name)
        double = protocol.double_normalise
        self.computed_in = compute.computed_in
        self.images, self.labels = training_images(data, double_normalise=double), torch.tensor(data.labels)
        self.test_images, self.test_labels = prepare_test_images(data, test, whiten=not double, data_dir=data_dir)

    def trainer(self, check: Callable[[], None]) -> Trainer:
        passes = self.recipe.epochs * len(self.data)
        return Trainer(self.net, DataSpec.of(self.data), self.recipe, passes=passes, compute=self.compute, check=check)

    def run(self, trainer: Trainer, repeat: int, tick: Callable[[], None]) -> EvaluationRun:
        count = self.protocol.num_evals
        test_epochs = {self.recipe.epochs * test // count for test in range(1, count + 1)}
        tests: list[tuple[float, tuple[float | None, ...]]] = []

        def after_epoch(done: int, _total: int) -> None:
            tick()
            if done in test_epochs:
                tests.append(self._test(trainer))

        start = time.perf_counter()
        trainer.fit(
            self.images,
            self.labels,
            weights=generator(self.seed, Stream.EVALUATION, repeat, Stream.WEIGHTS),
            batches=generator(self.seed, Stream.EVALUATION, repeat, Stream.BATCHES),
            progress=after_epoch,
        )
        best = None if self.protocol.report == "last" else max(accuracy for accuracy, _ in tests)
        return EvaluationRun(repeat, *tests[-1], time.perf_counter() - start, best)

    def _test(self, trainer: Trainer) -> tuple[float, tuple[float | None, ...]]:
        """Accuracy on all test images, and on those of each class."""
        logits = trainer.logits(self.test_images)
        if not torch.isfinite(logits).all():
            raise BadOption(
                f"Training on {self.data.name} diverged: the outputs are NaN or infinite; check its value space."
            )
        correct = (logits.argmax(1) == self.test_labels).double()
        return float(correct.mean()), _by_class(correct, self.test_labels, len(self.data.classes))


def _by_class(correct: Tensor, labels: Tensor, classes: int) -> tuple[float | None, ...]:
    totals = torch.bincount(labels, minlength=classes).tolist()
    sums = torch.bincount(labels, weights=correct, minlength=classes).tolist()
    return tuple(hits / total if total else None for hits, total in zip(sums, totals, strict=True))


class _Stopped(Exception):
    """Another repeat failed, or the user stops."""


class _Repeats:
    """Runs the repeats of a job, counts their epochs and stops them all if one fails."""

    def __init__(self, job: _Job, count: int, progress: Progress | None) -> None:
        self._job, self._count, self._progress = job, count, progress
        self._epochs = 0
        self._lock, self._stopping = Lock(), Event()

    def run(self) -> list[EvaluationRun]:
        workers = self._job.compute.parallel_runs(self._count)
        with threads(self._job.compute.threads):
            if workers == 1:
                # In this thread: another one would start its own OpenMP threads, more than there are cores, and a step with
                # two threads would take half as long again.
                return self._run_some(range(self._count))
            return self._run_parallel(workers)

    def _run_parallel(self, workers: int) -> list[EvaluationRun]:
        pool = ThreadPoolExecutor(workers, thread_name_prefix=WORKERS)
        futures = [pool.submit(self._run_some, range(worker, self._count, workers)) for worker in range(workers)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            pool.shutdown(wait=False)  # a compiling thread stops late
            raise
        finally:
            self._stopping.set()
        pool.shutdown()
        for failure in (future.exception() for future in futures):
            if failure is not None and not isinstance(failure, _Stopped):
                raise failure
        return sorted((run for future in futures for run in future.result()), key=lambda run: run.repeat)

    def _run_some(self, repeats: Sequence[int]) -> list[EvaluationRun]:
        """Run these repeats one after another in the current thread."""
        torch.set_num_threads(self._job.compute.threads)  # PyTorch keeps the number per thread
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
