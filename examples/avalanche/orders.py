"""The order that an exemplar policy needs, without Avalanche: best first, so that the last entries go first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from condense_once import CondensedSet


def easy_first(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> list[int]:
    """Rows by the L2 norm of the error vector of a network, as EL2N has it, lowest first; ties by row.

    >>> easy_first(np.float32([[0, 0], [0, 4], [4, 0]]), np.array([0, 0, 0]))
    [2, 0, 1]
    """
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    error = shifted / shifted.sum(1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    return np.argsort(np.linalg.norm(error, axis=1), kind="stable").tolist()


def rows_to_keep(data: CondensedSet, seen: Iterable[int], max_size: int) -> NDArray[np.int64]:
    """The rows of a ranked set that a memory of `max_size` exemplars keeps of the classes seen: a prefix of each.

    >>> from condense_once import load
    >>> data = load("cifar10-idc-ipc10")
    >>> data.labels[rows_to_keep(data, [3, 7], 5)].tolist()
    [3, 3, 3, 7, 7]
    """
    labels = list(dict.fromkeys(seen))
    per_class, remainder = divmod(max_size, max(1, len(labels)))
    parts = [np.flatnonzero(data.labels == label)[: per_class + (at < remainder)] for at, label in enumerate(labels)]
    return np.concatenate([np.empty(0, np.int64), *parts])
