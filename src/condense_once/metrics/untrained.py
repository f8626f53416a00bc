"""Scores before training: EL2N and GraNd at initialisation (Paul et al., Deep Learning on a Data Diet, 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.checks import check_recorded, recorded
from condense_once.metrics.registry import METRICS, MetricInfo


def mean_over_networks(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean over untrained networks of a value of every patch, such as ‖p − y‖₂ or the norm of its gradient.

    Paul et al. average GraNd over ten networks at initialisation. Kirsch (2023) finds that on real images it then is little
    more than the norm of an image.

    Args:
        values: `[R, N]`, a row for each network.

    Returns:
        `[N]`.

    >>> mean_over_networks(np.array([[0.5, 1.0], [1.0, 1.25]], np.float32))
    array([0.75 , 1.125], dtype=float32)
    """
    check_recorded("values of untrained networks", values, of="networks")
    if not np.isfinite(values).all():
        raise BadOption("The outputs of an untrained network contain NaN or infinity; check the images of the set.")
    means: NDArray[np.float64] = values.mean(0, dtype=np.float64)
    return means.astype(np.float32)


EL2N_INIT = METRICS.add(
    MetricInfo(
        "el2n-init",
        "prediction error of ten untrained networks",
        easy="low",
        keeps="hard",
        needs=frozenset({"untrained"}),
        stage="none",
        compute=lambda run, _: mean_over_networks(recorded(run.untrained).error),
    )
)
GRAND_INIT = METRICS.add(
    MetricInfo(
        "grand-init",
        "norm of the last-layer gradient of ten untrained networks",
        easy="low",
        keeps="hard",
        needs=frozenset({"untrained"}),
        stage="none",
        compute=lambda run, _: mean_over_networks(recorded(run.untrained).gradient),
    )
)
