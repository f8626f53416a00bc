"""Before a long job: how long will it take and how much memory, from two seconds of measurement on this machine."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from condense_once.condensed.set import CondensedSet
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.evaluation.running import Settings
from condense_once.nets import default_net, make_net, multiply_adds
from condense_once.train.engine import NetChoice, Trainer, split_rows
from condense_once.train.hardware import PASS, should_compile, threads
from condense_once.train.images import HELD
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator

MEASURE = 2.0  # seconds
COMPILED = 0.4  # of the time of a plain step, see benchmarks/bench_step.py
COMPILING = 30.0  # seconds
FORWARD = 1 / 3  # of a training step is the forward pass alone


@dataclass(frozen=True)
class Plan:
    seconds: float
    bytes: int
    steps: int
    step_seconds: float  # of a plain step, not compiled


def plan_evaluation(
    data: CondensedSet,
    test_images: int,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    settings: Settings | None = None,
    step_seconds: float | None = None,
) -> Plan:
    """Estimate an evaluation: unless the time of a step is given, real steps are timed; the rest is arithmetic."""
    chosen = PROTOCOLS.get(protocol) if isinstance(protocol, str) else protocol
    recipe, network, settings = chosen.recipe(data), net or default_net(data.shape), settings or Settings()
    module = make_net(network, data.shape, len(data.classes), generator=generator(0, "plan"))
    step = _time_step(data, recipe, network, settings) if step_seconds is None else step_seconds
    work = recipe.epochs * len(data) * multiply_adds(module, data.shape) / PASS
    compiled = should_compile(settings.compilation, torch.device(settings.device), work)
    batch, workers = min(len(data), recipe.batch), settings.side_by_side(repeats)
    training = recipe.epochs * len(data) / batch * step * (COMPILED if compiled else 1)
    testing = chosen.looks * test_images / batch * step * FORWARD
    rounds = -(-repeats // workers)
    image = 4 * math.prod(data.shape)
    held = sum(count * image for count in (len(data), test_images) if count * image <= HELD)
    return Plan(
        seconds=rounds * (training + testing) + (COMPILING if compiled else 0),
        bytes=held + workers * _training_bytes(module, data, batch),
        steps=repeats * recipe.epochs * len(split_rows(torch.arange(len(data)), recipe.batch)),
        step_seconds=step,
    )


class _Enough(Exception):
    """The measurement has lasted long enough."""


def _time_step(data: CondensedSet, recipe: Recipe, net: NetChoice, settings: Settings) -> float:
    """Seconds of one plain training step with the threads that each repeat has."""
    rows = slice(0, recipe.batch)
    inputs, labels = torch.from_numpy(data.inputs(rows)), torch.tensor(data.labels[rows])
    trainer = Trainer(
        net,
        data.shape,
        len(data.classes),
        replace(recipe, epochs=1000),  # enough to measure, however short the recipe
        data.space,
        passes=0,
        computing=replace(settings, compilation="off"),
    )
    timed: list[float] = []

    def tick(_: int) -> None:
        timed.append(time.perf_counter())
        if len(timed) > 1 and timed[-1] - timed[0] > MEASURE:
            raise _Enough

    with threads(settings.threads), suppress(_Enough):
        trainer.fit(inputs, labels, weights=generator(0, "weights"), batches=generator(0, "batches"), progress=tick)
    return (timed[-1] - timed[0]) / (len(timed) - 1)


def _training_bytes(module: nn.Module, data: CondensedSet, batch: int) -> int:
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
