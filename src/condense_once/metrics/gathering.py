"""Gathering evidence: one training run for all the metrics that are asked for, no longer than they need."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from condense_once.condensed.set import CondensedSet
from condense_once.metrics.evidence import ONE_RUN, Evidence
from condense_once.metrics.final import final_outputs
from condense_once.metrics.registry import METRICS, epochs_needed
from condense_once.metrics.settings import MetricSettings


def gather(
    data: CondensedSet,
    names: Iterable[str],
    settings: MetricSettings,
    *,
    net: str | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Evidence:
    """What the metrics of these names need to know of the patches of a set."""
    from condense_once.train.dynamics import record_run  # late: not all metrics need torch

    chosen = list(names)
    needs = frozenset[str]().union(*(METRICS.get(name).needs for name in chosen))
    if not needs & ONE_RUN:
        return Evidence(data.labels)
    epochs = epochs_needed(chosen, settings)
    run = record_run(data, epochs=epochs, net=net, seed=seed, clean="clean dynamics" in needs, progress=progress)
    probabilities = features = None
    if needs & {"probabilities", "features"}:
        probabilities, features = final_outputs(run.trainer.net, run.inputs)
    return Evidence(data.labels, run.training, run.clean, probabilities, features)
