"""Estimates of time and memory that verbs print before they train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from condense_once.cli.printing import err_console
from condense_once.text import human_bytes, plural, time_range

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet
    from condense_once.data.source import Source
    from condense_once.metrics import MetricConfig
    from condense_once.train.compute_config import ComputeConfig
    from condense_once.train.cost import CostEstimate


@contextmanager
def measuring() -> Iterator[None]:
    """Show that this machine is being timed."""
    with err_console.status("measuring this machine"):
        yield


def evaluation_cost(
    data: CondensedSet, source: Source, protocol: str, net: str | None, repeats: int, compute: ComputeConfig
) -> CostEstimate:
    from condense_once.evaluation.cost import estimate_evaluation

    with measuring():
        return estimate_evaluation(
            data, len(source.test.labels), protocol=protocol, net=net, repeats=repeats, compute=compute
        )


def scoring_cost(
    data: CondensedSet,
    names: Sequence[str],
    config: MetricConfig,
    runs: int,
    net: str | None,
    compute: ComputeConfig,
) -> CostEstimate | None:
    """None if nothing is trained."""
    if not names:
        return None
    from condense_once.metrics.cost import estimate_scoring

    with measuring():
        return estimate_scoring(data, names, config, runs=runs, net=net, compute=compute)


def cost_text(cost: CostEstimate) -> str:
    time = time_range(*cost.seconds_range)
    return f"{plural(cost.steps, 'step')}, {time} and {human_bytes(cost.bytes)} of memory."
