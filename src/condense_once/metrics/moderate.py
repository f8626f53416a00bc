"""Moderate coreset (Xia et al., 2023): distance from the typical patches of its class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import recorded
from condense_once.metrics.classwise import in_each_class
from condense_once.metrics.registry import METRICS, MetricInfo


def moderate(features: NDArray[np.float32], labels: NDArray[Any]) -> NDArray[np.float32]:
    """|d − median of d in the class|, where d = ‖f − mean of f in the class‖₂.

    Args:
        features: f, `[N, d]`.
        labels: `[N]`.

    Returns:
        `[N]`, low for patches to keep first: neither prototypes nor outliers.

    >>> moderate(np.array([[0.0], [3.0], [4.0], [13.0]]), np.zeros(4, int))  # mean 5, so d = 5, 2, 1, 8
    array([1.5, 1.5, 2.5, 4.5], dtype=float32)
    """
    return in_each_class(features, labels, _off_median).astype(np.float32)


def _off_median(members: NDArray[np.float64]) -> NDArray[np.float64]:
    distances = np.linalg.norm(members - members.mean(0), axis=1)
    off: NDArray[np.float64] = np.abs(distances - np.median(distances))
    return off


MODERATE = METRICS.add(
    MetricInfo(
        "moderate",
        "difference of a patch's distance to its class mean from the median distance",
        easy="low",
        needs=frozenset({"features"}),
        stage="end",
        compute=lambda run, _: moderate(recorded(run.features), run.labels),
    )
)
