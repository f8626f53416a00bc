"""Select a part of a set by any rule, for one size: also by rules that are not orders, and with a training run if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet, Ranking, subset_provenance, whole_name
from condense_once.condensed.set_view import SetView
from condense_once.condensed.stored_dtype import StoredDtype, with_dtype
from condense_once.condensed.subset import Subset, choose_subset, rank_within_class
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig, ScoringRun, record_scoring_run
from condense_once.metrics.score import score
from condense_once.metrics.score_records import made_by, missing_scores, scoring_record, stored_record
from condense_once.progress import Progress
from condense_once.selection.rule import Rule, RuleInfo, as_rule

if TYPE_CHECKING:
    from condense_once.nets import NetChoice
    from condense_once.train.compute_config import ComputeConfig


def select(
    data: CondensedSet | str | Path,
    rule: str | Rule | RuleInfo = "yoco",
    budget: Budget | str | int | float | None = None,
    *,
    ipc: int | None = None,
    total: int | None = None,
    fraction: float | str | Fraction | None = None,
    bytes: int | str | None = None,  # noqa: A002 (the field of `Budget`)
    classes: Sequence[str] | None = None,
    per_class: Mapping[str, int] | None = None,
    renumber: bool = False,
    dtype: StoredDtype | None = None,
    runs: int = 1,
    seed: int | None = None,
    net: NetChoice | None = None,
    config: MetricConfig | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> CondensedSet:
    """The part of a set that a rule keeps within a budget; the budget is given as for `resize`.

    With the defaults of `runs`, `seed`, `net` and `config`, stored scores are used if there are any. Otherwise scores are made as
    by `score`, with a training run if there are none made in that way. `seed` seeds that run and rules that sample. The result
    is a ranked set if the rule is an order, else in stored order. `notify` receives where the scores come from, and what the
    budget implied, as sentences.

    >>> import condense_once
    >>> condense_once.select("cifar10-real-ipc10", "random-balanced", ipc=1).counts().tolist()
    [4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    data, chosen = as_set(data), as_rule(rule)
    if dtype is not None:
        data = with_dtype(data, dtype)
    amounts = {"ipc": ipc, "total": total, "fraction": fraction, "bytes": bytes}
    budget = Budget.of(budget, **amounts, classes=classes, per_class=per_class, renumber=renumber)
    subset, _ = validate_budget(data, chosen, budget)  # before any training
    notify = notify or (lambda _: None)
    scoring = Scoring(runs, seed, net, config)
    notify(describe_scoring(data, chosen, scoring, compute))
    scored, features = resolve_scores(data, chosen, scoring, compute, progress)
    for note in subset.notes:
        notify(note)
    return apply_rule(scored, chosen, budget, features=features, seed=scoring.seed_or_default)


class Scoring(NamedTuple):
    """How to make the scores that a rule reads; by default, stored ones are used."""

    runs: int = 1
    seed: int | None = None
    net: NetChoice | None = None
    config: MetricConfig | None = None

    @property
    def seed_or_default(self) -> int:
        return self.seed if self.seed is not None else self.config.seed if self.config is not None else 0

    def uses_stored(self, data: CondensedSet, rule: Rule) -> bool:
        """Whether stored scores are used, however they were made; random ones are always sampled again."""
        return self == Scoring() and rule.metric in data.scores and bool(METRICS.get(rule.metric).needs)


def resolve_scores(
    data: CondensedSet,
    rule: Rule,
    scoring: Scoring,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> tuple[CondensedSet, NDArray[np.float32] | None]:
    """The set with the scores that a rule reads, and the features if it reads those; trains if they are not there."""
    if rule.reads == "positions":
        return data, None
    if rule.reads == "scores":
        if scoring.uses_stored(data, rule):
            return data, None
        return score(data, [rule.metric], **scoring._asdict(), compute=compute, progress=progress), None
    if scoring.runs != 1:
        raise BadOption(f"The rule {rule.name!r} reads features, which cannot be averaged; leave out `runs`.")
    config, net = replace(scoring.config or MetricConfig.for_data(data), seed=scoring.seed_or_default), scoring.net
    run = record_scoring_run(data, [rule.metric], config, net=net, seed=config.seed, compute=compute, progress=progress)
    record = scoring_record(data, rule.metric, 1, net, config)
    provenance = {**data.provenance, "features": {**record, **made_by(record, run.rounding)}}
    return replace(data, provenance=provenance), run.features


def describe_scoring(data: CondensedSet, rule: Rule, scoring: Scoring, compute: ComputeConfig | None = None) -> str:
    """Where `resolve_scores` takes the scores or features of a rule from, as a sentence."""
    if rule.reads == "features":
        return (
            f"The rule {rule.name} reads features, which are not stored in files; a network is trained to record them."
        )
    if not METRICS.get(rule.metric).needs:
        return f"The rule {rule.name} needs no training."
    if scoring.uses_stored(data, rule):
        return f"The rule {rule.name} uses the stored scores by {rule.metric}."
    config = replace(scoring.config or MetricConfig.for_data(data), seed=scoring.seed_or_default)
    if not missing_scores(data, [rule.metric], scoring.runs, scoring.net, config, compute):
        return f"The rule {rule.name} uses the stored scores by {rule.metric}, which were made in the same way."
    other = " other than those stored" if rule.metric in data.scores else ""
    made = "no network is trained" if METRICS.get(rule.metric).stage == "none" else "a network is trained"
    return f"The rule {rule.name} uses scores by {rule.metric}{other}; {made} to make them."


def apply_rule(
    data: CondensedSet, rule: Rule, budget: Budget, *, features: NDArray[Any] | None = None, seed: int = 0
) -> CondensedSet:
    """Select by the scores of a set, or by `features` [N, d]; nothing is trained."""
    ranking = Ranking(rule.metric, "easy", rule.balanced, stored_record(data, rule.metric) or {})
    kept: dict[str, Any] = {"rule": rule.name, "of": len(data)} | ({"seed": seed} if rule.samples else {})
    provenance = subset_provenance({**data.provenance, "kept": kept}, len(data))
    name = whole_name(data.name, data.ranking, data.provenance, len(data))
    # before the budget is checked: bytes include them
    whole, data = data, replace(data, name=name, ranking=ranking, provenance=provenance)
    subset, counts = validate_budget(data, rule, budget)
    eligible = _eligible(data, budget)
    pool, pool_features = data.take(eligible), None if features is None else features[eligible]
    if rule.balanced or budget.per_class is not None:
        rows = rule.rows_per_class(pool, counts, features=pool_features, seed=seed)
    else:
        rows = rule.rows(pool, int(counts.sum()), features=pool_features, seed=seed)
    if repeated := len(rows) - len(np.unique(rows)):
        pool = replace(pool, provenance={**pool.provenance, "kept": {**kept, "repeated": repeated}})
    small = subset.renumber(pool.take(rows)).as_subset_of(len(data))
    if len(small) == len(data):
        small = replace(small, name=whole.name)
    ranking = replace(ranking, prefer=rule.preference(pool, len(rows)))
    return replace(small, ranking=ranking if rule.is_order else None)


def rows_from_run(
    data: CondensedSet, rule: Rule, count: int, run: ScoringRun, config: MetricConfig | None = None
) -> NDArray[np.int64]:
    """The rows of a set that a rule keeps, from a scoring run: many selections from one training run."""
    config = config or MetricConfig.for_data(data)
    if rule.reads != "scores":
        return rule.rows(data, count, features=run.features, seed=config.seed)
    scores = METRICS.get(rule.metric).score(run, config)
    return rule.rows(replace(data, scores={rule.metric: scores}), count, seed=config.seed)


def validate_budget(data: CondensedSet, rule: Rule, budget: Budget) -> tuple[Subset, NDArray[np.int64]]:
    """How many patches of each class a budget keeps, `[C]`, or an error if it cannot; needs no scores.

    The subset is the one of a ranked set with these labels: its classes and notes hold for the rule, its rows do not.
    """
    order = np.lexsort((data.labels, rank_within_class(data.labels))) if rule.balanced else np.arange(len(data))
    labels, view = data.labels[order], SetView.of(data)
    ranking = replace(data.ranking or Ranking(rule.metric), balanced=rule.balanced)
    view = replace(view, header=replace(view.header, ranking=ranking), labels=lambda stop: labels[:stop])
    subset = choose_subset(view, budget if rule.balanced else _as_total(budget, data))
    return subset, np.bincount(labels[subset.rows], minlength=len(data.classes))


def _as_total(budget: Budget, data: CondensedSet) -> Budget:
    """Without balance, images per class only decide the total number of patches."""
    if budget.ipc is None:
        return budget
    classes = len(data.classes if budget.classes is None else budget.classes)
    return replace(budget, ipc=None, total=budget.ipc * data.factor**2 * classes)


def _eligible(data: CondensedSet, budget: Budget) -> NDArray[np.int64]:
    """The rows of the classes that a valid budget names, by default all."""
    named = budget.classes or budget.per_class
    if named is None:
        return np.arange(len(data))
    return np.flatnonzero(np.isin(data.labels, [data.classes.index(name) for name in named]))
