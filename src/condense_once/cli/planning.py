"""What verbs say of time and memory before they train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from condense_once.cli.printing import aside, human_bytes, human_time

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet
    from condense_once.data.source import Source
    from condense_once.metrics import MetricConfig
    from condense_once.train.cost import Plan
    from condense_once.train.hardware import ComputeConfig


@contextmanager
def measuring() -> Iterator[None]:
    """Say that this machine is being timed, while it is."""
    with aside.status("measuring this machine"):
        yield


def evaluation_plan(
    data: CondensedSet, source: Source, protocol: str, net: str | None, repeats: int, compute: ComputeConfig
) -> Plan:
    from condense_once.evaluation.cost import plan_evaluation

    with measuring():
        return plan_evaluation(
            data, len(source.test.labels), protocol=protocol, net=net, repeats=repeats, compute=compute
        )


def scoring_plan(
    data: CondensedSet,
    names: Sequence[str],
    config: MetricConfig,
    runs: int,
    net: str | None,
    compute: ComputeConfig,
) -> Plan | None:
    """None if nothing has to be trained."""
    from condense_once.metrics.cost import estimate_scoring

    with measuring():
        return estimate_scoring(data, names, config, runs=runs, net=net, compute=compute)


def plan_text(plan: Plan) -> str:
    return f"{plan.steps} steps, about {human_time(plan.seconds)} and {human_bytes(plan.bytes)} of memory."
