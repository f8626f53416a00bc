"""LBPE, Logit-Based Prediction Error (He et al., You Only Condense Once, 2023): how wrong a patch was, on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import check_recorded
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.epochs import Epochs, mean_over
from condense_once.metrics.evidence import given
from condense_once.metrics.registry import METRICS, MetricInfo


def lbpe(error: NDArray[np.float32], correct: NDArray[np.bool_], epochs: Epochs) -> NDArray[np.float32]:
    """Mean over t ∈ T of ‖p_t − y‖₂, in 0…√2.

    T are the K epochs with the highest training accuracy among the first E in the paper, and any `Epochs` here. The paper
    takes the mean and the authors' program the sum, which gives the same order.

    Args:
        error: `[E, N]` ‖p − y‖₂ of probabilities p and one-hot labels y.
        correct: `[E, N]` whether the label had the largest p; it says which epochs are best.
        epochs: the epochs T.

    Returns:
        `[N]`, low for easy patches.

    >>> error = np.array([[1.0, 1.4], [0.2, 0.6], [0.4, 1.0]], np.float32)
    >>> correct = np.array([[0, 0], [1, 1], [1, 0]], bool)
    >>> lbpe(error, correct, Epochs.top(2, among=3))
    array([0.3, 0.8], dtype=float32)
    """
    check_recorded("error and correctness", error, correct)
    return mean_over(error, epochs.choose(correct), "error")


def _epochs(settings: MetricConfig) -> int:
    return settings.training if settings.lbpe.stop is None else settings.lbpe.stop


LBPE = METRICS.add(
    MetricInfo(
        "lbpe",
        "mean error over the epochs with the best training accuracy, from the training passes: YOCO's",
        easy="low",
        needs=frozenset({"dynamics"}),
        stage="early",
        early=_epochs,
        depends=frozenset({"lbpe"}),
        compute=lambda evidence, settings: lbpe(
            given(evidence.dynamics).error[: settings.training],
            given(evidence.dynamics).correct[: settings.training],
            settings.lbpe,
        ),
    )
)
LBPE_CLEAN = METRICS.add(
    MetricInfo(
        "lbpe-clean",
        "as lbpe, from passes in evaluation mode without augmentation",
        easy="low",
        needs=frozenset({"clean dynamics"}),
        stage="early",
        early=_epochs,
        depends=frozenset({"lbpe"}),
        compute=lambda evidence, settings: lbpe(
            given(evidence.clean_dynamics).error[: settings.training],
            given(evidence.clean_dynamics).correct[: settings.training],
            settings.lbpe,
        ),
    )
)
