"""Compare two rankings of the same patches: their overlap at each size, and their rank correlation."""

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


@dataclass(frozen=True)
class Overlap:
    """The overlap of two rankings at one size."""

    ipc: int
    patches: int
    shared: tuple[int, ...]  # origins of the patches in both, ascending
    by_chance: float  # expected overlap of two random orders
    counts: tuple[tuple[int, ...], tuple[int, ...]]  # patches per class, in either


@dataclass(frozen=True)
class Comparison:
    patches: int
    correlation: float  # Spearman's, over all patches
    sizes: tuple[Overlap, ...]


def compare(one: CondensedSet | str | Path, other: CondensedSet | str | Path) -> Comparison:
    """Compare two rankings of one set; patches are identified by their origin."""
    one, other = as_set(one), as_set(other)
    balanced = [_is_balanced(data) for data in (one, other)]
    places = _places(one, other)
    sizes = []
    for size, count in common_sizes(one.counts(), one.factor, balanced=any(balanced)):
        counts = tuple(tuple(data.take(slice(count)).counts().tolist()) for data in (one, other))
        shared = np.sort(one.origin[:count][places[:count] < count]).tolist()
        sizes.append(Overlap(size, count, tuple(shared), count**2 / len(one), (counts[0], counts[1])))
    return Comparison(len(one), rank_correlation(places), tuple(sizes))


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


def _places(one: CondensedSet, other: CondensedSet) -> NDArray[np.int64]:
    """The position in the other of each patch of the one, `[N]`; both must have the same patches."""
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
            f"{one.name} ({len(one)} patches) and {other.name} ({len(other)} patches) are not rankings of the same patches;"
            " compare two rankings of one whole set."
        )
    places = np.empty(len(one), np.int64)
    places[mine] = theirs
    return places


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other)
