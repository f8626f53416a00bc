"""Entropy (Coleman et al., Selection via Proxy, 2020): uncertainty of the trained network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import check_probabilities, recorded
from condense_once.metrics.registry import METRICS, MetricInfo


def entropy(probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
    """−Σ_k p_k ln p_k, in 0…ln C, where 0 ln 0 = 0.

    Args:
        probabilities: `[N, C]` of the trained network, in evaluation mode and without augmentation.

    Returns:
        `[N]`, low for easy patches. Labels are not used: a patch that is confidently wrong is easy, too.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ], dtype=float32)
    """
    check_probabilities(probabilities)
    p = probabilities.astype(np.float64)
    logarithms = np.log(p, where=p > 0, out=np.zeros_like(p))
    values: NDArray[np.float64] = np.abs((p * logarithms).sum(1))  # the sum is at most 0; abs avoids −0
    return values.astype(np.float32)


ENTROPY = METRICS.add(
    MetricInfo(
        "entropy",
        "entropy of the trained network's prediction",
        easy="low",
        keeps="hard",
        needs=frozenset({"probabilities"}),
        stage="end",
        labels=False,  # the paper's table says it uses labels; its formula does not
        compute=lambda run, _: entropy(recorded(run.probabilities)),
    )
)
