"""LBPE, Logit-Based Prediction Error (He et al., You Only Condense Once, 2023): mean prediction error over epochs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import check_recorded, recorded
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.epochs import Epochs, mean_over
from condense_once.metrics.registry import METRICS, MetricInfo


def lbpe(error: NDArray[np.float32], correct: NDArray[np.bool_], epochs: Epochs) -> NDArray[np.float32]:
    """Mean over t ∈ T of ‖p_t − y‖₂, in 0…√2.

    In the paper T are the K epochs with the highest training accuracy among the first E; here any `Epochs`. The authors' code
    sums instead of averaging, which gives the same order.

    Args:
        error: `[E, N]` ‖p − y‖₂ of probabilities p and labels y, one-hot or soft.
        correct: `[E, N]` whether the label had the largest p; decides which epochs are best.
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


def _epochs(config: MetricConfig) -> int:
    return config.scoring_epochs if config.lbpe_epochs.stop is None else config.lbpe_epochs.stop


LBPE = METRICS.add(
    MetricInfo(
        "lbpe",
        "mean prediction error over the epochs with the highest training accuracy (YOCO)",
        easy="low",
        needs=frozenset({"dynamics"}),
        stage="early",
        early=_epochs,
        depends=frozenset({"lbpe_epochs"}),
        compute=lambda run, config: lbpe(
            recorded(run.dynamics).error[: config.scoring_epochs],
            recorded(run.dynamics).correct[: config.scoring_epochs],
            config.lbpe_epochs,
        ),
    )
)
LBPE_CLEAN = METRICS.add(
    MetricInfo(
        "lbpe-clean",
        "LBPE in evaluation mode, without augmentation",
        easy="low",
        needs=frozenset({"clean_dynamics"}),
        stage="early",
        early=_epochs,
        depends=frozenset({"lbpe_epochs"}),
        compute=lambda run, config: lbpe(
            recorded(run.clean_dynamics).error[: config.scoring_epochs],
            recorded(run.clean_dynamics).correct[: config.scoring_epochs],
            config.lbpe_epochs,
        ),
    )
)
