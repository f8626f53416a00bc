"""How long an evaluation will take here, and how much memory."""

from __future__ import annotations

import math

import torch

from condense_once.condensed.set import CondensedSet
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.nets import default_net, make_net
from condense_once.train.cost import FORWARD, Plan, Step, time_step, training_bytes
from condense_once.train.hardware import ComputeConfig
from condense_once.train.images import HELD
from condense_once.train.seeds import generator
from condense_once.train.trainer import NetChoice, split_rows


def plan_evaluation(
    data: CondensedSet,
    test_images: int,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    compute: ComputeConfig | None = None,
    step: Step | None = None,
) -> Plan:
    """Estimate an evaluation: unless a step is given, real steps are timed; the rest is arithmetic."""
    chosen = PROTOCOLS.get(protocol) if isinstance(protocol, str) else protocol
    recipe, network, compute = chosen.recipe(data), net or default_net(data.shape), compute or ComputeConfig()
    module = make_net(network, data.shape, len(data.classes), generator=generator(0, "plan"))
    step = step or time_step(data, recipe, network, compute, epochs=recipe.epochs, thread_count=compute.threads)
    batch, workers = min(len(data), recipe.batch), compute.parallel_runs(repeats)
    training = step.total(recipe.epochs * len(data) / batch)
    testing = step.total(chosen.looks * test_images / batch) * FORWARD
    rounds = -(-repeats // workers)
    image = 4 * math.prod(data.shape)
    held = sum(count * image for count in (len(data), test_images) if count * image <= HELD)
    return Plan(
        seconds=rounds * (training + testing) + step.preparing,
        bytes=held + workers * training_bytes(module, data, batch),
        steps=repeats * recipe.epochs * len(split_rows(torch.arange(len(data)), recipe.batch)),
        step_seconds=step.seconds,
    )
