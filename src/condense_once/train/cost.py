"""Before a long job: what a training step takes on this machine, from two seconds of measurement; the rest is arithmetic."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from condense_once.condensed.set import CondensedSet
from condense_once.train.hardware import ComputeConfig, threads
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator
from condense_once.train.trainer import NetChoice, Trainer

MEASURE = 2.0  # seconds
COMPILED = 0.6  # of the time of a step, where PyTorch's compiler is called: not beside layers of our own
COMPILING = 30.0  # seconds
FORWARD = 1 / 3  # of a training step is the forward pass alone


@dataclass(frozen=True)
class Plan:
    seconds: float
    bytes: int
    steps: int
    step_seconds: float  # before PyTorch's compiler, where it will be called


@dataclass(frozen=True)
class Step:
    """A training step as it was timed: with layers of our own where the job will have them, not compiled by PyTorch."""

    seconds: float
    compiled: bool  # whether the job's steps will be

    def total(self, count: float) -> float:
        """Seconds of so many steps."""
        return count * self.seconds * (COMPILED if self.compiled else 1)

    @property
    def preparing(self) -> float:
        return COMPILING if self.compiled else 0.0


class _Enough(Exception):
    """The measurement has lasted long enough."""


def time_step(
    data: CondensedSet, recipe: Recipe, net: NetChoice, compute: ComputeConfig, *, epochs: int, thread_count: int
) -> Step:
    """Time the steps of a training of so many epochs, with so many threads."""
    rows = slice(0, recipe.batch)
    inputs, labels = torch.from_numpy(data.inputs(rows)), torch.tensor(data.labels[rows])
    trainer = Trainer(
        net,
        data.shape,
        len(data.classes),
        replace(recipe, epochs=1000),  # enough to measure, however short the recipe
        data.space,
        passes=epochs * len(data),
        compute=compute,
    )
    compiled, trainer.compiled = trainer.compiled, False  # which would take longer than the measurement
    timed: list[float] = []

    def tick(_: int) -> None:
        timed.append(time.perf_counter())
        if len(timed) > 1 and timed[-1] - timed[0] > MEASURE:
            raise _Enough

    with threads(thread_count), suppress(_Enough):
        trainer.fit(inputs, labels, weights=generator(0, "weights"), batches=generator(0, "batches"), progress=tick)
    return Step((timed[-1] - timed[0]) / (len(timed) - 1), compiled)


def training_bytes(module: nn.Module, data: CondensedSet, batch: int) -> int:
    """Weights with gradients and momentum, and what every layer hands on, with its gradient; seen by hooks."""
    handed_on = 0

    def count(_module: object, _inputs: object, output: object) -> None:
        nonlocal handed_on
        handed_on += output.nbytes if isinstance(output, Tensor) else 0

    for layer in module.modules():
        if not any(True for _ in layer.children()):
            layer.register_forward_hook(count)
    with torch.inference_mode():
        module.eval()(torch.zeros(1, *data.shape))
    return 3 * sum(weight.nbytes for weight in module.parameters()) + 2 * handed_on * batch
