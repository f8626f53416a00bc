"""Ranking: order the patches of a set once; from then on a smaller set is a prefix."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.score import how_scored, score
from condense_once.progress import Progress
from condense_once.select.order import Prefer, order_rows

if TYPE_CHECKING:
    from condense_once.train.hardware import ComputeConfig


def rank(
    data: CondensedSet,
    metric: str = "lbpe",
    *,
    prefer: Literal["easy", "hard", "auto"] = "easy",
    balanced: bool = True,
    runs: int = 1,
    seed: int = 0,
    net: str | None = None,
    settings: MetricConfig | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> CondensedSet:
    """The same patches stored best first, with their scores; YOCO is the rule that stands as default.

    What is set about scores is as in `score`.
    """
    prefer = decided(prefer, metric, balanced)
    scored = score(data, [metric], runs=runs, seed=seed, net=net, settings=settings, compute=compute, progress=progress)
    return in_order(scored, metric, prefer=prefer, balanced=balanced)


def decided(prefer: Literal["easy", "hard", "auto"], metric: str, balanced: bool) -> Prefer:
    """Which end an order prefers; it cannot be left to the size."""
    if prefer != "auto":
        return prefer
    raise BadOption(
        "Whether easy or hard patches are better depends on the size asked, so no order can prefer auto; rank by one of"
        f" them, or take one size with resize --rule {metric}-auto{'-balanced' if balanced else ''} (in Python: keep)."
    )


def in_order(data: CondensedSet, metric: str, *, prefer: Prefer, balanced: bool) -> CondensedSet:
    """A set with scores by a metric, stored best first by them."""
    easy = METRICS.get(metric).easy
    scores = data.scores[metric]
    rows = order_rows(scores, data.labels, easy=easy, prefer=prefer, balanced=balanced, index=data.origin)
    rule = Ranking(metric, prefer, balanced, how_scored(data, metric) or {})
    return replace(data.take(rows), ranking=rule)
