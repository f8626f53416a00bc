"""Estimated time and memory of scoring on this machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from condense_once.condensed.set import CondensedSet
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.scoring_run import total_epochs
from condense_once.nets import NetChoice, default_net, make_net
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.cost import FORWARD, CostEstimate, StepTime, time_step, training_bytes
from condense_once.train.dynamics import recipe_for
from condense_once.train.seeds import generator
from condense_once.train.trainer import split_rows


def estimate_scoring(
    data: CondensedSet,
    metrics: Sequence[str],
    config: MetricConfig,
    *,
    runs: int = 1,
    net: NetChoice | None = None,
    compute: ComputeConfig | None = None,
    step: StepTime | None = None,
) -> CostEstimate | None:
    """Estimate `score` or `rank`; without `step`, real training steps are timed. None if nothing is trained."""
    epochs = runs * total_epochs(metrics, config)
    if not epochs:
        return None
    recipe, network, compute = recipe_for(data.shape), net or default_net(data.shape), compute or ComputeConfig()
    module = make_net(network, data.shape, len(data.classes), generator=generator(0, "plan"))
    batch = min(len(data), recipe.batch)
    step = step or time_step(
        data, recipe, network, compute, epochs=epochs // runs, thread_count=torch.get_num_threads()
    )
    clean = any("clean_dynamics" in METRICS.get(name).needs for name in metrics)
    passes = 1 + (FORWARD if clean else 0)
    seconds = step.total(epochs * len(data) / batch) * passes + step.compile_seconds
    return CostEstimate(
        seconds=seconds,
        bytes=4 * len(data) * math.prod(data.shape) + training_bytes(module, data, batch),
        steps=epochs * len(split_rows(torch.arange(len(data)), recipe.batch)),
        step_seconds=step.seconds,
        seconds_range=step.range(seconds),
    )
