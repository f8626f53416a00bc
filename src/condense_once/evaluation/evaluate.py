"""Evaluation: train fresh networks on a set, test each at the end, report mean and standard deviation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import LabelUse, check_label_use, targets_of
from condense_once.data.arrays import ValueRange
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.evaluation.inputs import prepare_test_images, resolve_test, training_images
from condense_once.evaluation.protocols import Protocol, as_protocol
from condense_once.evaluation.result import EvaluationRun, Result
from condense_once.nets import NetChoice, default_net, net_name
from condense_once.progress import Progress
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import DataSpec
from condense_once.train.parallel import Check, EpochCounter, run_in_parallel
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import Trainer


def evaluate(
    data: CondensedSet | str | Path,
    test: Source | str | Path | None = None,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    like: str | None = None,
    values: ValueRange | None = None,
    data_dir: Path | None = None,
    labels: LabelUse | None = None,
    progress: Progress | None = None,
) -> Result:
    """Train `repeats` fresh networks on a set and test them on real images. Same seed, same machine: same result.

    `data` is a set, a path or the name of a bundled set; `test` is a source, a path or a name. By default `test` is the
    source with the set's classes, or its bundled sample if it is not downloaded, as the result notes. Classes are matched by
    name; `like` is a known source to take the class names of a path from, if it has none, and `values="unit"` says that its
    floats are pixels in 0…1. `data_dir` is the folder of downloaded sources. `labels` are those to train on, soft or hard: by
    default soft ones if the set has any, but hard ones under a protocol that follows the authors' code. `progress` counts the
    epochs of all repeats.
    """
    if repeats < 1:
        raise BadOption(f"An evaluation needs `repeats` of at least 1, not {repeats}.")
    data, protocol = as_set(data), as_protocol(protocol)
    source, note = resolve_test(data, test, like=like, values=values, data_dir=data_dir)
    start = time.perf_counter()
    use = labels_for(data, protocol, labels)
    job = _Job(data, source, protocol, net or default_net(data.shape), seed, compute or ComputeConfig(), data_dir, use)
    runs = run_in_parallel(repeats, job.compute, _repeats(job, repeats, progress))
    return Result(
        set_name=data.name,
        patches=len(data),
        protocol=protocol.id,
        net=net_name(job.net),
        test=source.name,
        test_images=len(job.test_labels),
        seed=seed,
        runs=tuple(runs),
        seconds=time.perf_counter() - start,
        machine={
            **asdict(job.compute),
            "computed_in": job.computed_in,
            "native": job.native,
            "torch": torch.__version__,
        },
        ddof=1 if protocol.report == "last" else 0,
        note=note,
        labels=use,
    )


def labels_for(data: CondensedSet, protocol: Protocol, labels: LabelUse | None = None) -> LabelUse:
    """The labels that an evaluation trains on."""
    given: LabelUse | None = "hard" if labels is None and protocol.double_normalise else labels
    return check_label_use(given, data)


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
        labels: LabelUse = "hard",
    ) -> None:
        self.data, self.protocol, self.net, self.seed, self.compute = data, protocol, net, seed, compute
        self.recipe = protocol.recipe(data, test.name)
        double = protocol.double_normalise
        self.computed_in = compute.computed_in
        self.native = False  # whether native kernels computed the runs
        self.images = training_images(data, double_normalise=double)
        targets = targets_of(data) if labels == "soft" else None
        self.labels = torch.tensor(data.labels)
        self.targets = self.labels if targets is None else torch.tensor(targets.values)
        self.spec = DataSpec.of(data) if targets is None else DataSpec.of(data, targets.loss)
        self.test_images, self.test_labels = prepare_test_images(data, test, whiten=not double, data_dir=data_dir)

    def trainer(self, check: Callable[[], None]) -> Trainer:
        passes = self.recipe.epochs * len(self.data)
        made = Trainer(self.net, self.spec, self.recipe, passes=passes, compute=self.compute, check=check)
        self.native = made.native  # the same for all of them
        return made

    def run(self, trainer: Trainer, repeat: int, tick: Callable[[], None]) -> EvaluationRun:
        count = self.protocol.num_evals
        test_epochs = {self.recipe.epochs * test // count for test in range(1, count + 1)}
        tests: list[_Tested] = []

        def after_epoch(done: int, _total: int) -> None:
            tick()
            if done in test_epochs:
                tests.append(self._test(trainer))

        start = time.perf_counter()
        trainer.fit(
            self.images,
            self.targets,
            weights=generator(self.seed, Stream.EVALUATION, repeat, Stream.WEIGHTS),
            batches=generator(self.seed, Stream.EVALUATION, repeat, Stream.BATCHES),
            progress=after_epoch,
        )
        best = None if self.protocol.report == "last" else max(test.accuracy for test in tests)
        last, train_loss = tests[-1], float(cross_entropy(trainer.logits(self.images), self.labels))
        return EvaluationRun(
            repeat,
            last.accuracy,
            last.per_class,
            time.perf_counter() - start,
            best,
            train_loss=train_loss,
            test_loss=last.loss,
        )

    def _test(self, trainer: Trainer) -> _Tested:
        logits = trainer.logits(self.test_images)
        if not torch.isfinite(logits).all():
            raise BadOption(
                f"Training on {self.data.name} diverged: the outputs are NaN or infinite; check its value space."
            )
        correct = (logits.argmax(1) == self.test_labels).double()
        per_class = _by_class(correct, self.test_labels, len(self.data.classes))
        return _Tested(float(correct.mean()), per_class, float(cross_entropy(logits, self.test_labels)))


class _Tested(NamedTuple):
    """A network on the test images."""

    accuracy: float
    per_class: tuple[float | None, ...]
    loss: float


def _by_class(correct: Tensor, labels: Tensor, classes: int) -> tuple[float | None, ...]:
    totals = torch.bincount(labels, minlength=classes).tolist()
    sums = torch.bincount(labels, weights=correct, minlength=classes).tolist()
    return tuple(hits / total if total else None for hits, total in zip(sums, totals, strict=True))


def _repeats(job: _Job, count: int, progress: Progress | None) -> Callable[[Sequence[int], Check], list[EvaluationRun]]:
    """The work on some of `count` repeats, with one trainer; `progress` counts the epochs of all of them."""
    epochs = EpochCounter(count * job.recipe.epochs, progress)

    def work(repeats: Sequence[int], check: Check) -> list[EvaluationRun]:
        trainer = job.trainer(check)
        return [job.run(trainer, repeat, epochs.add) for repeat in repeats]

    return work
