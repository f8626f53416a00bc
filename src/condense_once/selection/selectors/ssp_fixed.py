"""SSP as YOCO's authors run it: k-means by the library they use, and of each centre the nearest patch, even if chosen before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.selection.selectors.registry import SELECTORS, SelectorInfo
from condense_once.train.seeds import Stream

# Of fast_pytorch_kmeans, their library.
ITERATIONS = 100  # at most
ROUNDING = 1e-12  # of the largest squared length: the two members of a cluster are equally near, and the first is kept
TOLERANCE = 1e-4  # stops where all centres together move by less, squared


def ssp_fixed_rows(features: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Keep the patch nearest to each of `count` k-means centres; patches that are nearest to several are kept as often.

    Seeds are sampled with replacement, and a cluster without members gets the zero vector as its centre. So centres coincide,
    and of 200 patches only some 150 are different.

    Args:
        features: `[N, d]`.
        count: how many to keep, from 0 to N; all N are kept once each.
        rng: samples the seeds.

    Returns:
        `[count]`, ascending, with repetitions.

    >>> ssp_fixed_rows(np.array([[1.0], [2.0], [5.0], [9.0]]), 3, np.random.default_rng(3)).tolist()
    [0, 0, 2]
    """
    if not 0 < count < len(features):
        return np.arange(count)
    points = features.astype(np.float64)
    centres = points[rng.integers(len(points), size=count)]
    for _ in range(ITERATIONS):
        before, centres = centres, _means(points, _squared_distances(points, centres).argmin(1), count)
        if np.square(centres - before).sum() <= TOLERANCE:
            break
    gaps = _squared_distances(points, centres)
    return np.sort((gaps <= gaps.min(0) + ROUNDING * np.square(points).sum(1).max()).argmax(0))


def _means(points: NDArray[np.float64], members: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    sums = np.zeros((count, points.shape[1]))
    np.add.at(sums, members, points)
    return sums / np.maximum(np.bincount(members, minlength=count), 1)[:, None]


def _squared_distances(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """`[n, k]`, up to rounding."""
    lengths = (np.einsum("nd,nd->n", each, each) for each in (points, centres))
    gaps: NDArray[np.float64] = np.add.outer(*lengths) - 2 * (points @ centres.T)
    return gaps


def _pick(
    values: NDArray[Any], count: int, *, data: CondensedSet, total: int, rng: np.random.Generator | None
) -> NDArray[np.int64]:
    return ssp_fixed_rows(values, count, rng or np.random.default_rng(0))


SSP_FIXED = SELECTORS.add(
    SelectorInfo(
        "ssp-fixed",
        "SSP as in YOCO's program: plain k-means, and a patch may be kept more than once",
        metric="ssp",
        pick=_pick,
        reads="features",
        stream=Stream.SSP,
        repeats=True,
    )
)
