"""Before a long job: how long will it take and how much memory, from two seconds of measurement on this machine."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from condense_once.condensed.set import CondensedSet
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.evaluation.running import Settings
from condense_once.nets import make_net
from condense_once.train.engine import NetChoice, Trainer, default_net
from condense_once.train.hardware import should_compile, threads
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator

MEASURE = 2.0  # seconds
COMPILED = 0.6  # of the time of a plain step, see benchmarks/bench_step.py
COMPILING = 30.0  # seconds
FORWARD = 1 / 3  # of a training step is the forward pass alone


@dataclass(frozen=True)
class Plan:
    seconds: float
    bytes: int
    steps: int
    step_seconds: float


def plan_evaluation(
    data: CondensedSet,
    test_images: int,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    settings: Settings | None = None,
) -> Plan:
    """Estimate an evaluation: steps of the real batch size are timed, the rest is arithmetic."""
    chosen = PROTOCOLS.get(protocol) if isinstance(protocol, str) else protocol
    recipe = chosen.recipe(data.size)
    network = net or default_net(data.shape)
    batches, rest = divmod(len(data), recipe.batch)
    per_epoch = batches + rest / recipe.batch if batches else 1.0
    settings = settings or Settings()
    step = _time_step(data, recipe, network, settings.threads)
    workers = settings.side_by_side(repeats)
    passes = recipe.epochs * len(data) * data.size[0] * data.size[1] / 32**2
    faster = should_compile(settings.compilation, torch.device(settings.device), passes)
    batch = min(len(data), recipe.batch)
    training = recipe.epochs * per_epoch * step * (COMPILED if faster else 1)
    testing = chosen.looks * test_images / batch * step * FORWARD
    rounds = -(-repeats // workers)
    return Plan(
        seconds=rounds * (training + testing) + (COMPILING if faster else 0),
        bytes=_bytes(data, test_images, batch, network, workers),
        steps=repeats * recipe.epochs * -(-len(data) // recipe.batch),
        step_seconds=step,
    )


class _Enough(Exception):
    """The measurement has lasted long enough."""


def _time_step(data: CondensedSet, recipe: Recipe, net: NetChoice, thread_count: int) -> float:
    """Seconds of one plain training step with the threads that each repeat has."""
    rows = slice(0, recipe.batch)
    inputs, labels = torch.from_numpy(data.inputs(rows)), torch.from_numpy(data.labels[rows])
    long = replace(recipe, epochs=1000)  # enough to measure, however short the recipe
    trainer = Trainer(net, data.shape, len(data.classes), long, data.space, passes=0, compilation="off")
    timed: list[float] = []

    def tick(_: int) -> None:
        timed.append(time.perf_counter())
        if len(timed) > 2 and timed[-1] - timed[0] > MEASURE:
            raise _Enough

    with threads(thread_count), suppress(_Enough):
        trainer.fit(inputs, labels, weights=generator(0, "weights"), batches=generator(0, "batches"), progress=tick)
    return (timed[-1] - timed[0]) / max(len(timed) - 1, 1)


def _bytes(data: CondensedSet, test_images: int, batch: int, net: NetChoice, workers: int) -> int:
    """Images as floats, and for each training its weights thrice and the activations of a batch, measured by a hook."""
    module = make_net(net, data.shape, len(data.classes), generator=torch.Generator().manual_seed(0))
    activations = 0

    def count(_module: object, _inputs: object, output: object) -> None:
        nonlocal activations
        activations += output.nbytes if isinstance(output, torch.Tensor) else 0

    for layer in module.modules():
        layer.register_forward_hook(count)
    with torch.inference_mode():
        module(torch.zeros(2, *data.shape))
    weights = sum(weight.nbytes for weight in module.parameters())
    image = 4 * data.channels * data.size[0] * data.size[1]
    return (len(data) + test_images) * image + workers * (3 * weights + activations // 2 * batch * 2)
