"""What the arrays given to a metric must be, said in one sentence where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption

SUM_TOLERANCE = 1e-3  # a softmax in bfloat16 is off by less


def check_recorded(what: str, *arrays: NDArray[Any], of: str = "epochs") -> None:
    """What was recorded of epochs (or runs) must be `[E, N]`, all of one shape."""
    shape = arrays[0].shape
    if len(shape) != 2 or 0 in shape or any(array.shape != shape for array in arrays):
        given = " and ".join(str(list(array.shape)) for array in arrays)
        raise BadOption(f"The {what} must be [{of}, patches], of one shape with at least one of each, not {given}.")


def check_features(features: NDArray[Any]) -> None:
    if features.ndim != 2 or 0 in features.shape:
        raise BadOption(
            f"Features must be [patches, dimensions] with at least one of each, not {list(features.shape)}."
        )
    if not np.isfinite(features).all():
        raise BadOption("The features hold values that are not finite numbers; train and look at the patches again.")


def check_probabilities(probabilities: NDArray[Any]) -> None:
    if probabilities.ndim != 2 or 0 in probabilities.shape:
        raise BadOption(
            f"Probabilities must be [patches, classes] with at least one of each, not {list(probabilities.shape)}."
        )
    # Written so that NaN fails as well.
    if not (probabilities.min() >= 0 and abs(probabilities.sum(1) - 1).max() <= SUM_TOLERANCE):
        raise BadOption("Probabilities must be at least 0 and add up to 1 for every patch; pass softmax, not logits.")


def check_labels(labels: NDArray[Any], patches: int, classes: int | None = None) -> None:
    if labels.shape != (patches,) or patches == 0 or labels.dtype.kind not in "iu":
        raise BadOption(
            f"Labels must be whole numbers, one for each of {patches} patches, not {labels.dtype} {list(labels.shape)}."
        )
    if labels.min() < 0 or (classes is not None and labels.max() >= classes):
        known = "must not be below 0" if classes is None else f"there are {classes} classes"
        raise BadOption(f"Labels run from {labels.min()} to {labels.max()}, but {known}.")
