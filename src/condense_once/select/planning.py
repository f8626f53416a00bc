"""How long scoring will take here, and how much memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from condense_once.condensed.set import CondensedSet
from condense_once.metrics import METRICS, MetricSettings
from condense_once.metrics.gathering import epochs_in_all
from condense_once.nets import default_net, make_net, multiply_adds
from condense_once.train.dynamics import recipe_for
from condense_once.train.engine import NetChoice, split_rows
from condense_once.train.hardware import PASS, Computing, should_compile
from condense_once.train.planning import COMPILED, COMPILING, FORWARD, Plan, time_step, training_bytes
from condense_once.train.seeds import generator


def plan_scoring(
    data: CondensedSet,
    metrics: Sequence[str],
    settings: MetricSettings,
    *,
    runs: int = 1,
    net: NetChoice | None = None,
    computing: Computing | None = None,
    step_seconds: float | None = None,
) -> Plan | None:
    """Estimate `score`, or `rank`: unless the time of a step is given, real steps are timed. None if nothing is trained."""
    epochs = runs * epochs_in_all(metrics, settings)
    if not epochs:
        return None
    recipe, network, computing = recipe_for(data.shape), net or default_net(data.shape), computing or Computing()
    module = make_net(network, data.shape, len(data.classes), generator=generator(0, "plan"))
    batch = min(len(data), recipe.batch)
    step = step_seconds or time_step(data, recipe, network, computing, torch.get_num_threads())
    work = epochs / runs * len(data) * multiply_adds(module, data.shape) / PASS
    compiled = should_compile(computing.compilation, torch.device(computing.device), work)
    clean = any("clean dynamics" in METRICS.get(name).needs for name in metrics)
    passes = (COMPILED if compiled else 1) + (FORWARD if clean else 0)
    return Plan(
        seconds=epochs * len(data) / batch * step * passes + (COMPILING if compiled else 0),
        bytes=4 * len(data) * math.prod(data.shape) + training_bytes(module, data, batch),
        steps=epochs * len(split_rows(torch.arange(len(data)), recipe.batch)),
        step_seconds=step,
    )
