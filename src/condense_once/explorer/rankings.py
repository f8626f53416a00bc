"""The rankings that a page offers: that of the file, those of other files, and every order by the scores of the file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.set_view import SetView
from condense_once.condensed.subset import rank_within_class
from condense_once.metrics import METRICS
from condense_once.selection.compare import matching_rows
from condense_once.selection.order import Prefer
from condense_once.selection.rule import Rule

PREFERENCES: tuple[Prefer, ...] = ("easy", "hard")
MAX_SIZES = 500  # numbers of patches whose file size is computed; others are interpolated


@dataclass(frozen=True)
class PageRanking:
    """An order of the patches, and the command that keeps the first of them."""

    label: str
    command: str  # up to the budget
    rule: str | None  # its name, if its metric is known here
    metric: str
    prefer: Prefer
    balanced: bool
    net: str | None = None  # that scored the patches, as far as is known
    order: NDArray[np.int64] | None = None  # rows best first; None: by the scores of the metric
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # numbers of patches, and bytes of their files


def page_rankings(
    data: CondensedSet, file: str, others: Sequence[tuple[str, CondensedSet]] = ()
) -> Iterator[PageRanking]:
    """The ranking of a set first, then those of other files of the same patches, then the rules on its scores."""
    own = _of_file(data, file, np.arange(len(data)), "this file")
    yield own
    for name, other in others:
        yield _of_file(other, name, np.argsort(matching_rows(data, other)), name)
    for metric in data.scores:
        if metric not in METRICS or not METRICS.get(metric).needs:
            continue  # random scores are sampled again by `select`
        for ranking in (Ranking(metric, prefer, balanced) for balanced in (True, False) for prefer in PREFERENCES):
            if (metric, ranking.prefer, ranking.balanced) != (own.metric, own.prefer, own.balanced):
                rule = rule_name(ranking)
                command = shlex.join(["condense-once", "select", file, "--rule", rule])
                yield PageRanking(describe(ranking), command, rule, metric, ranking.prefer, ranking.balanced)


def rule_name(ranking: Ranking) -> str:
    return Rule(ranking.metric, ranking.prefer, ranking.balanced).name


def describe(ranking: Ranking) -> str:
    """A ranking in words.

    >>> describe(Ranking("lbpe")), describe(Ranking("el2n", "hard", balanced=False))
    ('lbpe, easiest first, balanced', 'el2n, hardest first, not balanced')
    """
    first = {"easy": "easiest", "hard": "hardest"}[ranking.prefer]
    return f"{ranking.metric}, {first} first, {'balanced' if ranking.balanced else 'not balanced'}"


def file_sizes(data: CondensedSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of patches and the bytes of files of them: of whole rounds of all classes, and some between.

    Where a larger file would not be larger (the checksum blocks double), the smaller is left out: a limit in bytes would not
    lead back to it.
    """
    view, total = SetView.of(data), len(data)
    counts = set(np.linspace(1, total, min(total, MAX_SIZES)).round().astype(int).tolist())
    if view.balanced:
        counts |= set(np.cumsum(np.bincount(rank_within_class(data.labels))).tolist())
    ordered = np.array(sorted(counts))
    sizes = np.array([view.file_size(int(count), data.classes) for count in ordered])
    later = np.minimum.accumulate(sizes[::-1])[::-1]  # the smallest file of at least as many
    keep = np.append(sizes[:-1] < later[1:], True)
    return ordered[keep], sizes[keep]


def _of_file(data: CondensedSet, file: str, order: NDArray[np.int64], where: str) -> PageRanking:
    ranking = data.ranking
    if ranking is None:
        raise ValueError("only ranked sets are shown")  # checked by the caller
    known = ranking.metric in METRICS
    return PageRanking(
        label=f"{describe(ranking)} ({where})",
        command=shlex.join(["condense-once", "resize", file]),
        rule=rule_name(ranking) if known else None,
        metric=ranking.metric,
        prefer=ranking.prefer,
        balanced=ranking.balanced,
        net=ranking.settings.get("net"),
        order=order,
        sizes=file_sizes(data),
    )
