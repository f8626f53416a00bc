"""Ranking: order the patches of a set once; after that, every smaller set is a prefix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig, MetricInfo
from condense_once.metrics.score import metric_names, score
from condense_once.metrics.score_records import stored_record
from condense_once.progress import Progress
from condense_once.selection.order import Prefer, order_rows

if TYPE_CHECKING:
    from condense_once.nets import NetChoice
    from condense_once.train.compute_config import ComputeConfig


def rank(
    data: CondensedSet | str | Path,
    metric: str | MetricInfo = "lbpe",
    *,
    prefer: Literal["easy", "hard", "auto"] = "easy",
    balanced: bool = True,
    runs: int = 1,
    seed: int | None = None,
    net: NetChoice | None = None,
    config: MetricConfig | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
    anew: bool = False,
) -> CondensedSet:
    """The same patches stored best first, with their scores; the defaults are YOCO. See `score` for the other parameters.

    A nested set has the order that it was condensed for already, so it is refused unless it is to be ranked `anew`.
    """
    (name,) = metric_names([metric])
    data = as_set(data)
    if not anew:
        refuse_nested(data, name)
    prefer = ranking_preference(prefer, name, balanced)
    scored = score(data, name, runs=runs, seed=seed, net=net, config=config, compute=compute, progress=progress)
    return rank_by_scores(scored, name, prefer=prefer, balanced=balanced)


def refuse_nested(data: CondensedSet, metric: str) -> None:
    """Keep the order of a nested set from being replaced by one that its patches were not condensed for."""
    if data.is_nested:
        raise BadOption(
            f"{data.name} is nested: its first images were condensed to be a good set, for every number of them, so it needs no"
            f" ranking; resize it as it is, or pass `anew` to replace its order by one by {metric}."
        )


def ranking_preference(prefer: Literal["easy", "hard", "auto"], metric: str, balanced: bool) -> Prefer:
    """The preference of a ranking, which cannot depend on the size."""
    if prefer != "auto":
        return prefer
    raise BadOption(
        "A ranking cannot have `prefer` 'auto', because the better choice depends on the size; prefer 'easy' or 'hard', or select"
        f" one size by the rule {metric}-auto{'-balanced' if balanced else ''}."
    )


def rank_by_scores(
    data: CondensedSet | str | Path, metric: str, *, prefer: Prefer = "easy", balanced: bool = True
) -> CondensedSet:
    """A set stored best first by the scores that it has."""
    data = as_set(data)
    if metric not in data.scores:
        raise BadOption(f"{data.name} has no scores by {metric!r}; score it first.")
    info, scores = METRICS.get(metric), data.scores[metric]
    rows = order_rows(
        scores, data.labels, easy=info.easy, prefer=prefer, balanced=balanced, index=data.origin, ties=info.ties
    )
    ranking = Ranking(metric, prefer, balanced, stored_record(data, metric) or {})
    return replace(data.take(rows), ranking=ranking)
