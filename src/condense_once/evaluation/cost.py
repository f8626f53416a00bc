"""The time and memory that an evaluation takes on this machine."""

from __future__ import annotations

import math

import torch

from condense_once.condensed.set import CondensedSet
from condense_once.evaluation.protocols import Protocol, as_protocol
from condense_once.nets import NetChoice, default_net, make_net
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.cost import FORWARD, CostEstimate, StepTime, time_step, training_bytes
from condense_once.train.images import MEMORY_LIMIT
from condense_once.train.seeds import generator
from condense_once.train.trainer import split_rows


def estimate_evaluation(
    data: CondensedSet,
    test_images: int,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    compute: ComputeConfig | None = None,
    step: StepTime | None = None,
) -> CostEstimate:
    """Estimate the cost of an evaluation from the time of a step, which is measured unless `step` is given."""
    protocol = as_protocol(protocol)
    recipe, network, compute = protocol.recipe(data), net or default_net(data.shape), compute or ComputeConfig()
    module = make_net(network, data.shape, len(data.classes), generator=generator(0, "plan"))
    step = step or time_step(data, recipe, network, compute, epochs=recipe.epochs, thread_count=compute.threads)
    batch, workers = min(len(data), recipe.batch), compute.parallel_runs(repeats)
    training = step.total(recipe.epochs * len(data) / batch)
    testing = step.total(protocol.num_evals * test_images / batch) * FORWARD
    rounds = -(-repeats // workers)
    image = 4 * math.prod(data.shape)
    in_memory = sum(count * image for count in (len(data), test_images) if count * image <= MEMORY_LIMIT)
    seconds = rounds * (training + testing) + step.compile_seconds
    return CostEstimate(
        seconds=seconds,
        bytes=in_memory + workers * training_bytes(module, data, batch),
        steps=repeats * recipe.epochs * len(split_rows(torch.arange(len(data)), recipe.batch)),
        step_seconds=step.seconds,
        seconds_range=step.range(seconds),
    )
