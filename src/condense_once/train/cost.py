"""The cost of a job on this machine, estimated from two seconds of training steps."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from condense_once.condensed.set import CondensedSet
from condense_once.nets import NetChoice
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import threads
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator
from condense_once.train.trainer import Trainer

MEASURE = 2.0  # seconds
COMPILED = 0.6  # time of a step with `torch.compile`, relative to a plain one
COMPILING = 30.0  # seconds
FORWARD = 1 / 3  # share of the forward pass in a training step
PARTS = 4  # of the measurement: the fastest and the slowest make the range


@dataclass(frozen=True)
class CostEstimate:
    seconds: float
    bytes: int
    steps: int
    step_seconds: float  # as timed, without `torch.compile`
    seconds_range: tuple[float, float]  # if all steps were as fast, or as slow, as parts of the measurement


@dataclass(frozen=True)
class StepTime:
    """The time of a training step, with native kernels if the job uses them, but without `torch.compile`."""

    seconds: float
    compiled: bool  # whether the job uses `torch.compile`
    spread: tuple[float, float] = (1.0, 1.0)  # of the fastest and the slowest part of the measurement, relative to all

    def total(self, count: float) -> float:
        """Seconds of so many steps."""
        return count * self.seconds * (COMPILED if self.compiled else 1)

    @property
    def compile_seconds(self) -> float:
        return COMPILING if self.compiled else 0.0

    def range(self, seconds: float) -> tuple[float, float]:
        """The range of an estimate that is based on this time."""
        return seconds * self.spread[0], seconds * self.spread[1]


class _Measured(Exception):
    """Enough steps are timed."""


def time_step(
    data: CondensedSet, recipe: Recipe, net: NetChoice, compute: ComputeConfig, *, epochs: int, thread_count: int
) -> StepTime:
    """Time the steps of a run of `epochs` epochs with `thread_count` threads."""
    rows = slice(0, recipe.batch)
    inputs, labels = torch.from_numpy(data.inputs(rows)), torch.tensor(data.labels[rows])
    endless = replace(recipe, epochs=1000)  # enough steps to time, however short the recipe
    trainer = Trainer(net, DataSpec.of(data), endless, passes=epochs * len(data), compute=compute)
    compiled, trainer.compiled = trainer.compiled, False  # compiling would take longer than the measurement
    timed: list[float] = []

    def tick(_done: int, _total: int) -> None:
        timed.append(time.perf_counter())
        if len(timed) > 1 and timed[-1] - timed[0] > MEASURE:
            raise _Measured

    with threads(thread_count), suppress(_Measured):
        trainer.fit(inputs, labels, weights=generator(0, "weights"), batches=generator(0, "batches"), progress=tick)
    mean = (timed[-1] - timed[0]) / (len(timed) - 1)
    return StepTime(mean, compiled, _spread(timed, mean))


def _spread(timed: list[float], mean: float) -> tuple[float, float]:
    """Step times of the fastest and the slowest of `PARTS` parts of a measurement, relative to the mean."""
    parts = [part.mean() / mean for part in np.array_split(np.diff(timed), min(PARTS, len(timed) - 1))]
    return float(min(parts)), float(max(parts))


def training_bytes(module: nn.Module, data: CondensedSet, batch: int) -> int:
    """Memory of weights with gradients and momentum, and of all activations with their gradients."""
    activations = 0

    def count(_module: object, _inputs: object, output: object) -> None:
        nonlocal activations
        activations += output.nbytes if isinstance(output, Tensor) else 0

    for layer in module.modules():
        if not any(True for _ in layer.children()):
            layer.register_forward_hook(count)
    with torch.inference_mode():
        module.eval()(torch.zeros(1, *data.shape))
    return 3 * sum(weight.nbytes for weight in module.parameters()) + 2 * activations * batch
