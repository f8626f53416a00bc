"""Compare two rankings of the same patches, or two rules on one set: their overlap at each size, and their rank correlation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.budget import common_sizes
from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics import METRICS
from condense_once.selection.rule import Rule, RuleInfo, as_rule
from condense_once.selection.select import Scoring, resolve_scores
from condense_once.text import plural


@dataclass(frozen=True)
class Overlap:
    """The overlap of two selections of one size."""

    ipc: int
    patches: int
    shared: tuple[int, ...]  # origins of the patches in both, ascending
    by_chance: float  # expected overlap of two random selections
    counts: tuple[tuple[int, ...], tuple[int, ...]]  # patches per class, in either


@dataclass(frozen=True)
class Comparison:
    """Two rankings or two rules, size by size."""

    patches: int
    correlation: float | None  # Spearman's, over all patches; None if a rule is not an order
    sizes: tuple[Overlap, ...]


def compare(one: CondensedSet | str | Path, other: CondensedSet | str | Path) -> Comparison:
    """Compare two rankings of one set; patches are identified by their origin."""
    one, other = as_set(one), as_set(other)
    balanced = [_is_balanced(data) for data in (one, other)]
    places = matching_rows(one, other)
    sizes = common_sizes(one.counts(), one.factor, balanced=any(balanced))
    overlaps = (_overlap(ipc, one.take(slice(count)), other.take(slice(count)), len(one)) for ipc, count in sizes)
    return Comparison(len(one), rank_correlation(places), tuple(overlaps))


def compare_rules(
    data: CondensedSet | str | Path, one: str | Rule | RuleInfo, other: str | Rule | RuleInfo
) -> Comparison:
    """Compare what two rules keep of one set at each size, by the scores that it has; nothing is trained.

    >>> compare_rules("cifar10-idc-ipc10", "yoco", "lbpe-hard-balanced").correlation < -0.9
    True
    """
    scored = as_set(data)
    rules = [as_rule(one), as_rule(other)]
    for rule in rules:
        scored = _scored_for(scored, rule)
    first, second = rules
    sizes = common_sizes(scored.counts(), scored.factor, balanced=any(rule.balanced for rule in rules))
    overlaps = tuple(
        _overlap(ipc, scored.take(first.rows(scored, count)), scored.take(second.rows(scored, count)), len(scored))
        for ipc, count in sizes
    )
    if not all(rule.is_order and rule.prefer != "auto" for rule in rules):
        return Comparison(len(scored), None, overlaps)
    orders = [rule.rows(scored, len(scored)) for rule in rules]
    return Comparison(len(scored), rank_correlation(np.argsort(orders[1])[orders[0]]), overlaps)


def _scored_for(data: CondensedSet, rule: Rule) -> CondensedSet:
    """The set with the scores that a rule reads, refused if they would have to be trained for."""
    if rule.reads == "features":
        raise BadOption(f"The rule {rule.name!r} reads features, which are not stored in sets; compare another rule.")
    if METRICS.get(rule.metric).needs and rule.metric not in data.scores:
        raise BadOption(
            f"{data.name} has no scores by {rule.metric!r}, which the rule {rule.name!r} reads; score it first."
        )
    return resolve_scores(data, rule, Scoring())[0]


def _overlap(ipc: int, one: CondensedSet, other: CondensedSet, patches: int) -> Overlap:
    """The overlap of two selections of a set of so many patches."""
    shared = np.intersect1d(one.origin, other.origin).tolist()
    counts = tuple(one.counts().tolist()), tuple(other.counts().tolist())
    return Overlap(ipc, len(one), tuple(shared), len(one) ** 2 / patches, counts)


def _is_balanced(data: CondensedSet) -> bool:
    if data.ranking is None:
        raise BadOption(f"{data.name} is not ranked, so there is nothing to compare; rank it first.")
    return data.ranking.balanced


def rank_correlation(places: NDArray[np.int64]) -> float:
    """Spearman's ρ of two orders, given the position in the second of each patch of the first.

    >>> rank_correlation(np.array([0, 1, 2])), rank_correlation(np.array([2, 1, 0]))
    (1.0, -1.0)
    """
    n = len(places)
    if n < 2:
        return 1.0
    gaps = (places - np.arange(n)).astype(np.float64)
    return float(1 - 6 * np.square(gaps).sum() / (n * (n * n - 1.0)))


def matching_rows(one: CondensedSet, other: CondensedSet) -> NDArray[np.int64]:
    """The row in the other of each patch of the one, `[N]`, by origin; both must have the same patches."""
    mine, theirs = (np.argsort(data.origin, kind="stable") for data in (one, other))
    alike = (
        (one.classes, one.shape, one.factor) == (other.classes, other.shape, other.factor)
        and len(one) == len(other)
        and _same(one.origin[mine], other.origin[theirs])
        and _same(one.labels[mine], other.labels[theirs])
        and (_is_coded(one, other) or _same(one.cells[mine], other.cells[theirs]))
    )
    if not alike:
        raise BadOption(
            f"{one.name} ({plural(len(one), 'patch')}) and {other.name} ({plural(len(other), 'patch')}) are not rankings of"
            " the same patches; compare two rankings of one whole set."
        )
    places = np.empty(len(one), np.int64)
    places[mine] = theirs
    return places


def _is_coded(*sets: CondensedSet) -> bool:
    """Whether a file of one of them stored its cells with loss; then equal patches differ."""
    return any("coded" in data.provenance for data in sets)


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other)
