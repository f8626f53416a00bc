"""Validation of the arrays passed to a metric."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption

T = TypeVar("T")

SUM_TOLERANCE = 1e-3  # a softmax in bfloat16 is off by less


def check_recorded(what: str, *arrays: NDArray[Any], of: str = "epochs") -> None:
    """Recorded values must be `[E, N]` (or `[R, N]`), all of one shape."""
    shape = arrays[0].shape
    if len(shape) != 2 or 0 in shape or any(array.shape != shape for array in arrays):
        given = " and ".join(str(list(array.shape)) for array in arrays)
        raise BadOption(f"The {what} must be non-empty arrays [{of}, patches] of one shape, not {given}.")


def check_features(features: NDArray[Any]) -> None:
    if features.ndim != 2 or 0 in features.shape:
        raise BadOption(f"Features must be a non-empty array [patches, dimensions], not {list(features.shape)}.")
    if not np.isfinite(features).all():
        raise BadOption("The features contain NaN or infinity; record the scoring run again.")


def check_probabilities(probabilities: NDArray[Any]) -> None:
    if probabilities.ndim != 2 or 0 in probabilities.shape:
        raise BadOption(f"Probabilities must be a non-empty array [patches, classes], not {list(probabilities.shape)}.")
    # phrased so that NaN fails, too
    if not (probabilities.min() >= 0 and abs(probabilities.sum(1) - 1).max() <= SUM_TOLERANCE):
        raise BadOption(
            "Probabilities must be non-negative and sum to 1 for every patch; pass softmax outputs, not logits."
        )


def check_labels(labels: NDArray[Any], patches: int, classes: int | None = None) -> None:
    if labels.shape != (patches,) or patches == 0 or labels.dtype.kind not in "iu":
        raise BadOption(
            f"Labels must be integers, one for each of {patches} patches, not {labels.dtype} {list(labels.shape)}."
        )
    if labels.min() < 0 or (classes is not None and labels.max() >= classes):
        known = "must not be negative" if classes is None else f"there are {classes} classes"
        raise BadOption(f"Labels run from {labels.min()} to {labels.max()}, but {known}.")


def recorded(part: T | None) -> T:
    """A part of a scoring run that the metric declares in `needs`; `MetricInfo.score` makes sure that it was recorded."""
    if part is None:
        raise BadOption("The metric uses a part of the scoring run that its `needs` do not declare; add it there.")
    return part
