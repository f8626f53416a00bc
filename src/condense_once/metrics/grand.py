"""GraNd (Paul et al., Deep Learning on a Data Diet, 2021): norm of the gradient of a patch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.checks import check_features, check_labels, check_probabilities, recorded
from condense_once.metrics.registry import METRICS, MetricInfo


def grand(
    probabilities: NDArray[np.float32], features: NDArray[np.float32], labels: NDArray[Any]
) -> NDArray[np.float32]:
    """Norm of the gradient of the cross-entropy: ‖(p − y, (p − y) ⊗ f)‖₂ = ‖p − y‖₂ · √(1 + ‖f‖₂²).

    Only the gradient of the last linear layer, weight and bias, as in DeepCore (Guo et al., 2022); the closed form needs no
    backward pass. Paul et al. take all layers, early in training, averaged over ten networks: for that, pass outputs of an
    early network and average the scores.

    Args:
        probabilities: p, `[N, C]`.
        features: f, the input of the last layer, `[N, d]`.
        labels: y, `[N]`.

    Returns:
        `[N]`, low for easy patches.

    >>> grand(np.array([[0.7, 0.2, 0.1]]), np.array([[1.0, 1.0]]), np.array([0])).round(4)  # √0.14 · √3
    array([0.6481], dtype=float32)
    """
    check_probabilities(probabilities)
    check_features(features)
    check_labels(labels, *probabilities.shape)
    if len(features) != len(labels):
        raise BadOption(f"There are {len(labels)} patches but {len(features)} features.")
    error = probabilities.astype(np.float64)
    error[np.arange(len(labels)), labels] -= 1
    lengths = np.einsum("nd,nd->n", features, features, dtype=np.float64)
    norms: NDArray[np.float64] = np.linalg.norm(error, axis=1) * np.sqrt(1 + lengths)
    return norms.astype(np.float32)


GRAND = METRICS.add(
    MetricInfo(
        "grand",
        "norm of the last-layer gradient of the trained network",
        easy="low",
        keeps="hard",
        needs=frozenset({"probabilities", "features"}),
        stage="end",
        compute=lambda run, _: grand(recorded(run.probabilities), recorded(run.features), run.labels),
    )
)
