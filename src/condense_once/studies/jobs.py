"""The kinds of jobs in a study, scoring runs, slimming and evaluations, as values that can be sent to any process."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.condensed.file import from_bytes, to_bytes
from condense_once.condensed.set import Ranking
from condense_once.condensing.slim import slim
from condense_once.condensing.stop_signals import Interrupted
from condense_once.evaluation.evaluate import evaluate
from condense_once.evaluation.inputs import training_images
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.metrics import METRICS, Epochs, MetricConfig, record_scoring_run
from condense_once.metrics.scoring_run import DEFAULT_PARTS, UNTRAINED
from condense_once.nets import Shape, make_net, multiply_adds
from condense_once.selection.selectors import images_per_class
from condense_once.studies.grid import Cell, StudyInput, double_normalise_fact, key_of, precision_fact
from condense_once.studies.scoring_run_io import pack
from condense_once.train.compute_config import ComputeConfig, Precision
from condense_once.train.cost import FORWARD
from condense_once.train.hardware import processor, threads, versions
from condense_once.train.images import training_data
from condense_once.train.seeds import generator

Inputs = Sequence[StudyInput]


@dataclass(frozen=True)
class ScoringJob:
    """Train on all patches of a set and record what the metrics need.

    It records every epoch, so that rules by other epochs or metrics share the run. Metrics that need no training get none.
    """

    set_key: str
    net: str
    config: MetricConfig
    metrics: tuple[str, ...]  # those that need more than every run records
    double_normalise: bool
    precision: Precision
    work: float  # multiplications, roughly

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that determines what it records. Names of facts are part of the key and never change."""
        return {
            "set": self.set_key,
            "net": self.net,
            "metrics": list(self.metrics),
            **self.config.stored(),
            **double_normalise_fact(self.double_normalise),
            **precision_fact(self.precision),
        }

    @cached_property
    def key(self) -> str:
        return key_of(self.facts)

    def perform(self, inputs: Inputs, compute: ComputeConfig) -> bytes:
        trained = not self.metrics or any(METRICS.get(name).stage != "none" for name in self.metrics)
        recorded = [info.name for info in METRICS if info.needs <= DEFAULT_PARTS] if trained else []
        data = next(pair.data for pair in inputs if pair.set_key == self.set_key)
        prepared = training_data(data)
        if self.double_normalise:
            prepared = replace(prepared, images=training_images(data, double_normalise=True))
        with threads(1):
            run = record_scoring_run(
                prepared,
                [*recorded, *self.metrics],
                self.config,
                net=self.net,
                seed=self.config.seed,
                compute=replace(compute, precision=self.precision),
            )
        return pack(run)


@dataclass(frozen=True)
class SlimmingJob:
    """Refine some patches of a set into a slimmed set, as `condense_once.slim` does."""

    facts: Mapping[str, Any]  # everything that determines the set
    rows: NDArray[np.int64]  # of the patches to start from, best first
    ranking: Ranking  # by which these are the best
    precision: Precision
    work: float

    @cached_property
    def key(self) -> str:
        return key_of(self.facts)

    def perform(self, inputs: Inputs, compute: ComputeConfig) -> bytes:
        data = next(pair.data for pair in inputs if pair.set_key == self.facts["set"])
        others = np.setdiff1d(np.arange(len(data)), self.rows)
        ranked = replace(data.take(np.concatenate([self.rows, others])), ranking=self.ranking)
        how: Mapping[str, Any] = self.facts["slim"]
        settings: dict[str, Any] = {"minutes": None, "net": self.facts["net"], "seed": self.facts["seed"]}
        try:
            with threads(1):
                made = slim(
                    ranked,
                    ipc=round(images_per_class(data, len(self.rows))),
                    method=how["method"],
                    nested=how["nested"],
                    overrides=how["recipe"],
                    compute=replace(compute, precision=self.precision),
                    **settings,
                )
        except Interrupted:  # by Ctrl-C or SIGTERM: it ends the process, and is no failure of the job
            raise KeyboardInterrupt from None
        return to_bytes(made)


@dataclass(frozen=True)
class EvaluationJob:
    """Train a network on some patches of a set, or on the first patches of a slimmed one, and test it."""

    facts: Mapping[str, Any]  # everything that determines its result
    rows: NDArray[np.int64]
    slimmed: bytes | None  # the file of the slimmed set
    protocol: Protocol  # not its name, which the process that runs the job may not know
    precision: Precision
    work: float

    @property
    def key(self) -> str:
        return key_of(self.facts)

    def perform(self, inputs: Inputs, compute: ComputeConfig) -> dict[str, Any]:
        wanted = (self.facts["set"], self.facts["test"])
        pair = next(pair for pair in inputs if (pair.set_key, pair.test_key) == wanted)
        single = replace(compute, precision=self.precision, workers=1, threads=1)
        slimmed = None if self.slimmed is None else from_bytes(self.slimmed, "The slimmed set")
        result = evaluate(
            pair.data.take(self.rows) if slimmed is None else slimmed.take(slice(self.facts["patches"])),
            pair.test,
            protocol=self.protocol,
            net=self.facts["net"],
            repeats=1,
            seed=self.facts["repeat"],
            compute=single,
            data_dir=pair.data_dir,
            labels="hard",
        )
        run = result.runs[0]
        machine = {**result.machine, "host": platform.node(), "processor": processor()}
        return {
            "accuracy": run.accuracy,
            "best": run.best,
            "train_loss": run.train_loss,
            "test_loss": run.test_loss,
            "per_class": list(run.per_class),
            "test": result.test,
            "test_images": result.test_images,
            "machine": machine,
            "versions": versions(),
        }


Job = ScoringJob | SlimmingJob | EvaluationJob


def scoring_job(cell: Cell) -> ScoringJob | None:
    """The run that scores the patches of a cell; None for rules that need none."""
    if not cell.needs_scoring_run:
        return None
    data, info = cell.input.data, METRICS.get(cell.rule.metric)
    config = replace(cell.config, lbpe_epochs=Epochs.all(), el2n_epochs=1, params={})
    passes = config.scoring_epochs * len(data) if info.stage != "none" else round(FORWARD * UNTRAINED * len(data))
    if "subset_runs" in info.needs:
        passes += round(config.subset_runs * config.subset_epochs * config.subset_fraction * len(data))
    return ScoringJob(
        set_key=cell.input.set_key,
        net=cell.scored_by,
        config=config,
        metrics=(info.name,) if info.needs - DEFAULT_PARTS else (),
        double_normalise=cell.double_normalise,
        precision=cell.precision,
        work=passes * _multiplications(cell.scored_by, data.shape, len(data.classes)),
    )


def slimming_job(cell: Cell, rows: NDArray[np.int64]) -> SlimmingJob | None:
    """The job that refines the patches of a cell; None if they are kept as they are."""
    facts, rule = cell.slimming_facts(rows), cell.rule
    if facts is None:
        return None
    ranking = Ranking(
        rule.selector if rule.reads == "positions" else rule.metric, rule.preference(cell.input.data, len(rows))
    )
    return SlimmingJob(facts, rows, ranking, cell.precision, slimming_work(cell))


def evaluation_job(cell: Cell, rows: NDArray[np.int64], slimmed: bytes | None = None) -> EvaluationJob:
    facts, protocol = cell.evaluation_facts(rows), PROTOCOLS.get(cell.protocol)
    return EvaluationJob(facts, rows, slimmed, protocol, cell.precision, evaluation_work(cell))


def slimming_work(cell: Cell) -> float:
    """An expert is trained on the whole set; a step passes as much of that as fits a batch, and updates the kept patches."""
    if cell.slimming is None:
        return 0.0
    data, recipe = cell.input.data, cell.slimming.recipe
    real = min(len(data), len(data.classes) * recipe["real_batch"])
    steps = recipe["iterations"] * (FORWARD * real + cell.slimmed)
    images = recipe["experts"] * recipe["expert_epochs"] * len(data) + steps
    return float(images * _multiplications(cell.slimmed_by, data.shape, len(data.classes)))


def evaluation_work(cell: Cell) -> float:
    data, test = cell.input.data, cell.input.test
    protocol = PROTOCOLS.get(cell.protocol)
    images = protocol.recipe(data, test.name).epochs * cell.patches + protocol.num_evals * FORWARD * len(
        test.test.labels
    )
    return images * _multiplications(cell.net, data.shape, len(data.classes))


@cache
def _multiplications(net: str, shape: Shape, classes: int) -> float:
    """In one forward pass of one image."""
    return multiply_adds(make_net(net, shape, classes, generator=generator(0, "work")), shape)


def use_one_thread() -> None:
    """Jobs run in parallel, so each uses one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
