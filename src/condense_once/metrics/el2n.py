"""EL2N (Paul et al., Deep Learning on a Data Diet, 2021): prediction error in the first epochs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import check_recorded, recorded
from condense_once.metrics.epochs import Epochs, mean_over
from condense_once.metrics.registry import METRICS, MetricInfo


def el2n(error: NDArray[np.float32], first: int = 10) -> NDArray[np.float32]:
    """Mean over t < `first` of ‖p_t − y‖₂, in 0…√2.

    Paul et al. take the error at one early epoch, averaged over ten networks; like YOCO's authors, we take the first ten epochs
    of one.

    Args:
        error: `[E, N]` ‖p − y‖₂ of probabilities p and labels y, one-hot or soft.
        first: number of epochs.

    Returns:
        `[N]`, low for easy patches.

    >>> el2n(np.array([[1.0, 1.4], [0.2, 0.6], [0.0, 0.0]], np.float32), first=2)
    array([0.6, 1. ], dtype=float32)
    """
    check_recorded("error", error)
    correct = np.broadcast_to(np.False_, error.shape)  # unused by a range
    return mean_over(error, Epochs.range(0, first - 1).choose(correct), "error")


EL2N = METRICS.add(
    MetricInfo(
        "el2n",
        "mean prediction error over the first epochs, by default ten",
        easy="low",
        keeps="hard",
        needs=frozenset({"dynamics"}),
        stage="early",
        early=lambda config: config.el2n_epochs,
        compute=lambda run, config: el2n(recorded(run.dynamics).error, config.el2n_epochs),
    )
)
