"""Entropy (Coleman et al., Selection via Proxy, 2020): how unsure the trained network is of a patch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import check_probabilities
from condense_once.metrics.evidence import given
from condense_once.metrics.registry import METRICS, MetricInfo


def entropy(probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
    """−Σ_k p_k ln p_k, in 0…ln C, where 0 ln 0 = 0.

    Args:
        probabilities: `[N, C]` of the trained network, in evaluation mode and without augmentation.

    Returns:
        `[N]`, low for easy patches. Labels play no part: a patch that is surely wrong is easy too.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ], dtype=float32)
    """
    check_probabilities(probabilities)
    p = probabilities.astype(np.float64)
    logarithms = np.log(p, where=p > 0, out=np.zeros_like(p))
    unsure: NDArray[np.float64] = np.abs((p * logarithms).sum(1))  # the sum is never above 0; abs leaves no −0
    return unsure.astype(np.float32)


ENTROPY = METRICS.add(
    MetricInfo(
        "entropy",
        "entropy of what the trained network says",
        easy="low",
        keeps="hard",
        needs=frozenset({"probabilities"}),
        stage="end",
        labels=False,  # the paper's table says it does; its formula does not
        compute=lambda evidence, _: entropy(given(evidence.probabilities)),
    )
)
