"""The two kinds of work in a study, as values that can be sent anywhere: watching a training, and evaluating a selection."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.evaluation.evaluate import evaluate
from condense_once.evaluation.inputs import training_images
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.metrics import METRICS, record_scoring_run
from condense_once.metrics.scoring_run import DEFAULT_PARTS
from condense_once.nets import Shape, make_net, multiply_adds
from condense_once.studies.grid import Cell, Subject, Watch, key_of
from condense_once.studies.serialize import pack
from condense_once.train.cost import FORWARD
from condense_once.train.hardware import ComputeConfig, Precision, processor, threads, versions
from condense_once.train.images import training_data
from condense_once.train.seeds import generator

Subjects = Sequence[Subject]


@dataclass(frozen=True)
class WatchJob:
    """Train on all patches of a set and record what every metric of a single run needs."""

    watch: Watch
    work: float  # multiplications, or nearly

    @property
    def key(self) -> str:
        return self.watch.key

    @property
    def facts(self) -> dict[str, Any]:
        return self.watch.facts

    def perform(self, subjects: Subjects, compute: ComputeConfig) -> bytes:
        usual = [info.name for info in METRICS if info.needs <= DEFAULT_PARTS]
        watch, settings = self.watch, self.watch.settings
        data = next(one.data for one in subjects if one.set_key == watch.set_key)
        prepared = training_data(data)
        if watch.normalise_again:
            prepared = replace(prepared, images=training_images(data, double_normalise=True))
        with threads(1):
            run = record_scoring_run(
                prepared,
                [*usual, *watch.metrics],
                settings,
                net=watch.net,
                seed=settings.seed,
                compute=replace(compute, precision=watch.precision),
            )
        return pack(run)


@dataclass(frozen=True)
class EvaluateJob:
    """Train a network on some patches of a set and test it."""

    facts: Mapping[str, Any]  # all that decides its result
    rows: NDArray[np.int64]
    protocol: Protocol  # itself, for a name may mean nothing or another one where the job runs
    precision: Precision
    work: float

    @property
    def key(self) -> str:
        return key_of(self.facts)

    def perform(self, subjects: Subjects, compute: ComputeConfig) -> dict[str, Any]:
        wanted = (self.facts["set"], self.facts["test"])
        subject = next(one for one in subjects if (one.set_key, one.test_key) == wanted)
        alone = replace(compute, precision=self.precision, workers=1, threads=1)
        result = evaluate(
            subject.data.take(self.rows),
            subject.test,
            protocol=self.protocol,
            net=self.facts["net"],
            repeats=1,
            seed=self.facts["repeat"],
            compute=alone,
            home=subject.home,
        )
        run = result.runs[0]
        machine = {**result.machine, "host": platform.node(), "processor": processor()}
        return {
            "accuracy": run.accuracy,
            "best": run.best,
            "per_class": list(run.per_class),
            "test": result.test,
            "test_images": result.test_images,
            "machine": machine,
            "versions": versions(),
        }


Job = WatchJob | EvaluateJob


def watch_job(cell: Cell, watch: Watch) -> WatchJob:
    data = cell.subject.data
    settings, passes = watch.settings, watch.settings.scoring_epochs * len(data)
    if any("subset_runs" in METRICS.get(metric).needs for metric in watch.metrics):
        passes += round(settings.subset_runs * settings.subset_epochs * settings.subset_fraction * len(data))
    return WatchJob(watch, passes * _multiplications(watch.net, data.shape, len(data.classes)))


def evaluate_job(cell: Cell, rows: NDArray[np.int64]) -> EvaluateJob:
    protocol = PROTOCOLS.get(cell.protocol)
    return EvaluateJob(cell.evaluation_facts(rows), rows, protocol, cell.precision, evaluation_work(cell))


def evaluation_work(cell: Cell) -> float:
    data, test = cell.subject.data, cell.subject.test
    protocol = PROTOCOLS.get(cell.protocol)
    images = protocol.recipe(data, test.name).epochs * cell.patches + protocol.num_evals * FORWARD * len(
        test.test.labels
    )
    return images * _multiplications(cell.net, data.shape, len(data.classes))


@cache
def _multiplications(net: str, shape: Shape, classes: int) -> float:
    """Of one image on its way through a network."""
    return multiply_adds(make_net(net, shape, classes, generator=generator(0, "work")), shape)


def use_one_thread() -> None:
    """Jobs run side by side, one thread each."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
