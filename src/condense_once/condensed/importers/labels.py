"""Labels as files hold them: class numbers `[n]` or `[n, 1]`, one-hot rows, or learned vectors `[n, C]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.sniff import to_numpy
from condense_once.condensed.soft_labels import LabelKind, infer_kind


@dataclass(frozen=True)
class Labels:
    """Class numbers and, if the file has a vector for each image, soft labels."""

    hard: NDArray[Any]  # [n]
    soft: NDArray[np.float32] | None = None  # [n, C]
    notes: tuple[str, ...] = ()

    @property
    def soft_or_logits(self) -> LabelKind | None:
        """The kind of soft labels in projects whose loss applies a softmax to them."""
        if self.soft is None:
            return None
        return "probabilities" if infer_kind(self.soft) == "probabilities" else "logits"


def read_labels(value: Any) -> Labels:
    """The class of a vector is its largest entry.

    >>> read_labels(np.array([[0, 1], [1, 0]])).hard.tolist(), read_labels(np.array([[0.2, 0.9]])).soft.shape
    ([1, 0], (1, 2))
    """
    array = to_numpy(value, "labels")
    if array.ndim != 2 or not array.size:
        return Labels(array)
    if array.shape[1] == 1:
        return Labels(array[:, 0])
    hard = array.argmax(1)
    if ((array == 0) | (array == 1)).all() and (array.sum(1) == 1).all():
        return Labels(hard, notes=("Labels are one-hot rows, read as class numbers.",))
    counts = np.bincount(hard, minlength=array.shape[1])
    note = (
        f"Labels are learned vectors, kept as soft labels; by largest entry {counts.min()} to {counts.max()} per class."
    )
    return Labels(hard, array.astype(np.float32), (note,))
