"""Keeping a part of a set by any rule, for one size: also by rules that have no order, and so no ranked file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.file import header_of
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.subset import Selection, Stock, choose, told_of_a_part
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.gathering import gather
from condense_once.metrics.score import how_made, how_scored, made_by, score
from condense_once.progress import Progress
from condense_once.select.basis import Basis
from condense_once.select.order import turns
from condense_once.select.rule import Rule

if TYPE_CHECKING:
    from condense_once.train.hardware import ComputeConfig


@dataclass(frozen=True)
class Kept:
    data: CondensedSet
    notes: tuple[str, ...]  # what the budget brought about without saying so, as sentences


def keep(
    data: CondensedSet,
    rule: str | Rule,
    budget: Budget,
    *,
    runs: int = 1,
    seed: int | None = None,
    net: str | None = None,
    settings: MetricConfig | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> CondensedSet:
    """The part of a set that a rule keeps within a budget.

    It goes by the scores that the set has, if nothing is said of how they are to be made, and else by scores made in that
    way, with a training run if they are not there. `seed` is of all that is drawn, in that run or by the rule. By an
    order the part is stored best first, as a ranked set; by other rules in the order of the set.

    >>> import condense_once
    >>> data = condense_once.load("cifar10-real-ipc10")
    >>> condense_once.keep(data, "random-balanced", condense_once.Budget(ipc=1)).counts().tolist()
    [4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    chosen = Rule.parse(rule) if isinstance(rule, str) else rule
    size_up(data, chosen, budget)  # says no before any training
    known = find_out(data, chosen, runs=runs, seed=seed, net=net, settings=settings, compute=compute, progress=progress)
    return keep_by(*known, chosen, budget).data


def find_out(
    data: CondensedSet,
    rule: Rule,
    *,
    runs: int = 1,
    seed: int | None = None,
    net: str | None = None,
    settings: MetricConfig | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> tuple[CondensedSet, Basis]:
    """What a rule goes by, and the set with the scores that were found, if any."""
    drawn = seed or 0
    set_up = replace(settings or MetricConfig.for_data(data), seed=drawn)
    if rule.kind != "ssp":
        if has_scores(data, rule) and (settings, net, seed, runs) == (None, None, None, 1):
            return data, Basis.of_scores(data, set_up)
        scored = score(
            data, [rule.metric], runs=runs, seed=drawn, net=net, settings=set_up, compute=compute, progress=progress
        )
        return scored, Basis.of_scores(scored, set_up)

    def tick(done: int, _total: int) -> None:
        if progress is not None:
            progress(done, set_up.training)

    evidence = gather(data, [rule.metric], set_up, net=net, seed=drawn, compute=compute, progress=tick)
    made = how_made(data, rule.metric, 1, net, set_up)
    watched = replace(data, provenance={**data.provenance, "features": {**made, **made_by(made)}})
    return watched, Basis.of_evidence(watched, evidence, set_up)


def has_scores(data: CondensedSet, rule: Rule) -> bool:
    """Whether a set has the scores that a rule goes by; random ones are drawn anew."""
    return rule.kind != "ssp" and rule.metric in data.scores and bool(METRICS.get(rule.metric).needs)


def keep_by(data: CondensedSet, basis: Basis, rule: Rule, budget: Budget) -> Kept:
    """As `keep`, from what is known already."""
    ranking = Ranking(rule.metric, "easy", rule.balanced, how_scored(data, rule.metric) or {})
    kept_by: dict[str, Any] = {"rule": rule.name, "of": len(data)}
    if rule.draws:
        kept_by["seed"] = basis.settings.seed
    told = told_of_a_part({**data.provenance, "kept": kept_by}, len(data))
    data = replace(data, ranking=ranking, provenance=told)
    sized, counts = size_up(data, rule, budget)
    pool = _pool(budget, data)
    part = basis.part(pool)
    in_classes = rule.balanced or budget.per_class is not None
    rows = rule.rows_of_each(part, counts) if in_classes else rule.rows(part, int(counts.sum()))
    small = sized.renumber(data.take(pool[rows]))
    ranked = replace(ranking, prefer=rule.end(part, len(rows))) if rule.kind == "order" else None
    return Kept(replace(small, ranking=ranked), sized.notes)


def size_up(data: CondensedSet, rule: Rule, budget: Budget) -> tuple[Selection, NDArray[np.int64]]:
    """How many a budget keeps of each class, `[C]`, or a sentence on why it cannot; no scores are needed to know.

    It is what the budget would keep of any ranked set with these labels: only how many of which class is of use, not which.
    """
    order = np.lexsort((data.labels, turns(data.labels))) if rule.balanced else np.arange(len(data))
    ranking = replace(data.ranking or Ranking(rule.metric), balanced=rule.balanced)
    stock = Stock(replace(header_of(data), ranking=ranking), tuple(data.scores), lambda stop: data.labels[order][:stop])
    sized = choose(budget if rule.balanced else _in_all(budget, data), stock)
    return sized, np.bincount(data.labels[order[sized.rows]], minlength=len(data.classes))


def _in_all(budget: Budget, data: CondensedSet) -> Budget:
    """Without balance, images per class say only how many patches there are in all."""
    if budget.ipc is None:
        return budget
    classes = len(data.classes if budget.classes is None else budget.classes)
    return replace(budget, ipc=None, total=budget.ipc * data.factor**2 * classes)


def _pool(budget: Budget, data: CondensedSet) -> NDArray[np.int64]:
    """The patches of the classes in question; `choose` has seen to it that there are such classes."""
    named = budget.classes or budget.per_class
    if named is None:
        return np.arange(len(data))
    return np.flatnonzero(np.isin(data.labels, [data.classes.index(name) for name in named]))
