"""Two orders of the same patches side by side: what they share at each size, and how alike they are as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.select.sizes import cuts


@dataclass(frozen=True)
class Overlap:
    """What the first patches of two orders have in common."""

    ipc: int
    patches: int
    shared: tuple[int, ...]  # the origins of the patches that both have, ascending
    by_chance: float  # that many would be shared by two random orders, on average
    counts: tuple[tuple[int, ...], tuple[int, ...]]  # patches of each class, in the one and in the other


@dataclass(frozen=True)
class Comparison:
    patches: int
    correlation: float  # Spearman's, of the places of all patches
    sizes: tuple[Overlap, ...]


def compare(one: CondensedSet, other: CondensedSet) -> Comparison:
    """Compare two rankings of one set; patches are told by their origin."""
    mine, theirs = _is_balanced(one), _is_balanced(other)
    places = _places(one, other)
    sizes = []
    for size, count in cuts(one.counts(), one.factor, balanced=mine or theirs):
        counts = tuple(tuple(data.take(slice(count)).counts().tolist()) for data in (one, other))
        shared = np.sort(one.origin[:count][places[:count] < count]).tolist()
        sizes.append(Overlap(size, count, tuple(shared), count**2 / len(one), (counts[0], counts[1])))
    return Comparison(len(one), rank_correlation(places), tuple(sizes))


def _is_balanced(data: CondensedSet) -> bool:
    if data.ranking is None:
        raise BadOption(f"{data.name} is not ranked, so it has no order to compare; rank it first.")
    return data.ranking.balanced


def rank_correlation(places: NDArray[np.int64]) -> float:
    """Spearman's ρ of an order and another one, in which its patches stand at these places; 1 for the same order.

    >>> rank_correlation(np.array([0, 1, 2])), rank_correlation(np.array([2, 1, 0]))
    (1.0, -1.0)
    """
    n = len(places)
    if n < 2:
        return 1.0
    gaps = (places - np.arange(n)).astype(np.float64)
    return float(1 - 6 * np.square(gaps).sum() / (n * (n * n - 1.0)))


def _places(one: CondensedSet, other: CondensedSet) -> NDArray[np.int64]:
    """Where each patch of the one stands in the other, `[N]`; both must hold the same patches."""
    mine, theirs = (np.argsort(data.origin, kind="stable") for data in (one, other))
    alike = (
        (one.classes, one.shape, one.factor) == (other.classes, other.shape, other.factor)
        and len(one) == len(other)
        and _same(one.origin[mine], other.origin[theirs])
        and _same(one.labels[mine], other.labels[theirs])
        and _same(one.cells[mine], other.cells[theirs])
    )
    if not alike:
        raise BadOption(
            f"{one.name} ({len(one)} patches) and {other.name} ({len(other)} patches) are not two orders of the same patches;"
            " compare rankings of one whole set."
        )
    places = np.empty(len(one), np.int64)
    places[mine] = theirs
    return places


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other)
