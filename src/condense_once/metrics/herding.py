"""Herding (Welling, 2009; as in iCaRL, Rebuffi et al., 2017): the mean of every prefix approximates the class mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import recorded
from condense_once.metrics.classwise import in_each_class, positions
from condense_once.metrics.registry import METRICS, MetricInfo


def herding(features: NDArray[np.float32], labels: NDArray[Any]) -> NDArray[np.float32]:
    """The position at which a patch is picked within its class, divided by N.

    Each step picks the patch that brings the mean of the picked ones nearest to the class mean; ties go to the lowest index.

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

    With features centred on the class mean, pick the x that minimises ‖s + x‖² = ‖s‖² + 2⟨s, x⟩ + ‖x‖², where s is the sum of the
    picked ones; the first term is the same for all x.
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
        "position at which herding picks a patch within its class",
        easy="low",
        needs=frozenset({"features"}),
        stage="end",
        compute=lambda run, _: herding(recorded(run.features), run.labels),
    )
)
