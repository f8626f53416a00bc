"""k-center (Sener & Savarese, 2018): every prefix covers its class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import recorded
from condense_once.metrics.classwise import in_each_class, positions
from condense_once.metrics.registry import METRICS, MetricInfo


def k_center(features: NDArray[np.float32], labels: NDArray[Any]) -> NDArray[np.float32]:
    """The position at which a patch is picked within its class, divided by N.

    Greedy farthest-first traversal: start with the patch nearest to the class mean, then repeatedly pick the patch farthest from
    all picked ones; ties go to the lowest index.

    Args:
        features: `[N, d]`.
        labels: `[N]`.

    Returns:
        `[N]`, low for patches picked first.

    >>> k_center(np.array([[0.0], [3.0], [4.0], [13.0]]), np.zeros(4, int))  # mean 5
    array([0.5 , 0.75, 0.  , 0.25], dtype=float32)
    """
    scores = in_each_class(features, labels, lambda members: positions(_farthest_first(members)))
    return (scores / len(labels)).astype(np.float32)


def _farthest_first(members: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order in which members `[n, d]` are picked."""
    order = np.empty(len(members), np.int64)
    lengths = np.einsum("nd,nd->n", members, members)
    picked = int(np.square(members - members.mean(0)).sum(1).argmin())
    gaps = np.full(len(members), np.inf)  # squared distance to the nearest picked patch
    for place in range(len(order)):
        order[place] = picked
        gaps = np.minimum(gaps, lengths - 2 * (members @ members[picked]) + lengths[picked])
        gaps[picked] = -np.inf  # never again, even if all that is left are copies
        picked = int(gaps.argmax())
    return order


K_CENTER = METRICS.add(
    MetricInfo(
        "k-center",
        "position at which greedy k-center picks a patch within its class",
        easy="low",
        needs=frozenset({"features"}),
        stage="end",
        compute=lambda run, _: k_center(recorded(run.features), run.labels),
    )
)
