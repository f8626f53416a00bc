"""Herding (Welling, 2009; as in iCaRL, Rebuffi et al., 2017): prefixes whose mean stays near the mean of the class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.classwise import in_each_class, positions
from condense_once.metrics.evidence import given
from condense_once.metrics.registry import METRICS, MetricInfo


def herding(features: NDArray[np.float32], labels: NDArray[Any]) -> NDArray[np.float32]:
    """The place in which a patch is picked within its class, divided by N.

    Each pick is the patch that, added to those picked, brings their mean nearest to the mean of the class; of equals the
    one with the lowest number.

    Args:
        features: `[N, d]`.
        labels: `[N]`.

    Returns:
        `[N]`, low for patches picked first.

    >>> herding(np.array([[0.0], [3.0], [4.0], [13.0]]), np.zeros(4, int))  # mean 5
    array([0.75, 0.25, 0.  , 0.5 ], dtype=float32)
    """
    return (in_each_class(features, labels, lambda members: positions(_herd(members))) / len(labels)).astype(np.float32)


def _herd(members: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order in which members `[n, d]` are picked.

    Seen from the mean, the mean of t picks is near it when their sum s is short: pick x with the least
    ‖s + x‖² = ‖s‖² + 2⟨s, x⟩ + ‖x‖², of which the first term is common to all.
    """
    centred = members - members.mean(0)
    cost = np.square(centred).sum(1)
    order = np.empty(len(centred), np.int64)
    for place in range(len(order)):
        order[place] = picked = int(cost.argmin())
        cost += 2 * (centred @ centred[picked])
        cost[picked] = np.inf
    return order


HERDING = METRICS.add(
    MetricInfo(
        "herding",
        "the place in which herding picks a patch within its class",
        easy="low",
        needs=frozenset({"features"}),
        stage="end",
        compute=lambda evidence, _: herding(given(evidence.features), evidence.labels),
    )
)
