"""k-means with k-means++ initialisation and no empty clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.text import plural

ITERATIONS = 100  # at most; small sets converge in ten or twenty
BLOCK = 4096  # points whose distances to all centres are in memory at once


@dataclass(frozen=True)
class Clusters:
    centres: NDArray[np.float64]  # [k, d] cluster means
    members: NDArray[np.int64]  # [n] cluster of each point
    distances: NDArray[np.float64]  # [n] distance of each point to its centre

    def nearest(self, ties: NDArray[np.int64]) -> NDArray[np.int64]:
        """The point nearest to each centre, `[k]`, ascending; ties are broken by the lowest `ties` [n]."""
        nearest_first = np.lexsort((ties, self.distances, self.members))
        _, first = np.unique(self.members[nearest_first], return_index=True)
        return np.sort(nearest_first[first])


def k_means(points: NDArray[Any], k: int, rng: np.random.Generator) -> Clusters:
    """Cluster `points` [n, d] by Euclidean distance, with Lloyd's iterations until nothing changes.

    Points are sorted by their coordinates first, so the result does not depend on their order. A cluster that loses its
    last member gets the point that is farthest from its own centre.

    >>> points = np.array([[0.0], [10.0], [1.0], [11.0]])
    >>> k_means(points, 2, np.random.default_rng(0)).distances.tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    if points.ndim != 2 or 0 in points.shape or not np.isfinite(points).all():
        raise BadOption(f"k-means needs finite `points` [n, d] with n, d > 0, not {list(points.shape)}.")
    if not 1 <= k <= len(points):
        raise BadOption(
            f"{plural(len(points), 'point')} cannot form {plural(k, 'cluster')}; pass `k` from 1 to {len(points)}."
        )
    order = in_order(points)
    points = points[order].astype(np.float64)
    centres = points[_seeds(points, k, rng)]
    members = np.full(len(points), -1)
    for _ in range(ITERATIONS):
        before = members
        members = _fill_empty(*_nearest(points, centres), k)
        if (members == before).all():
            break
        centres = _means(points, members, k)
    back = np.argsort(order)
    return Clusters(centres, members[back], np.linalg.norm(points - centres[members], axis=1)[back])


def in_order(points: NDArray[Any]) -> NDArray[np.int64]:
    """Row indices sorted by the bytes of the rows: an order that depends on the coordinates alone."""
    rows = np.ascontiguousarray(points)
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    return np.argsort(whole.ravel(), kind="stable")


def _seeds(points: NDArray[np.float64], k: int, rng: np.random.Generator) -> list[int]:
    """k-means++: sample k distinct points, each with probability ∝ squared distance to those already sampled."""
    lengths = np.einsum("nd,nd->n", points, points)
    free = np.ones(len(points))  # 0 once sampled
    gaps = np.full(len(points), np.inf)
    seeds = [int(rng.integers(len(points)))]
    while len(seeds) < k:
        last = seeds[-1]
        free[last] = 0
        gaps = np.minimum(gaps, np.maximum(lengths - 2 * (points @ points[last]) + lengths[last], 0))
        odds = gaps * free if (gaps * free).any() else free  # only duplicates of the seeds are left: sample any
        seeds.append(int(rng.choice(len(points), p=odds / odds.sum())))
    return seeds


def _nearest(
    points: NDArray[np.float64], centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest centre of every point (the first of equals), and the squared distance to it."""
    members, gaps = np.empty(len(points), np.int64), np.empty(len(points))
    lengths = np.square(centres).sum(1)
    for start in range(0, len(points), BLOCK):
        rows = slice(start, start + BLOCK)
        squares = lengths - 2 * (points[rows] @ centres.T)  # ‖p − c‖² − ‖p‖²; the last term is the same for all c
        members[rows] = squares.argmin(1)
        gaps[rows] = squares.min(1) + np.einsum("nd,nd->n", points[rows], points[rows])
    return members, gaps


def _fill_empty(members: NDArray[np.int64], gaps: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    sizes = np.bincount(members, minlength=k)
    for cluster in np.flatnonzero(sizes == 0):
        farthest = int(np.where(sizes[members] > 1, gaps, -np.inf).argmax())  # never the only member of another cluster
        sizes[members[farthest]] -= 1
        members[farthest], sizes[cluster] = cluster, 1
    return members


def _means(points: NDArray[np.float64], members: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    grouped = np.argsort(members, kind="stable")
    sizes = np.bincount(members, minlength=k)
    sums: NDArray[np.float64] = np.add.reduceat(points[grouped], np.cumsum(sizes) - sizes)
    return sums / sizes[:, None]
