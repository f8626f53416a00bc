"""The sizes that people ask for first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

STEPS = (1, 2, 5)  # … 10, 20, 50, 100, …


def usual_sizes(below: float) -> Iterator[int]:
    """Images a class, from one up to less than those that a set has.

    >>> list(usual_sizes(10)), list(usual_sizes(50))
    ([1, 2, 5], [1, 2, 5, 10, 20])
    """
    ten = 1
    while True:
        for step in STEPS:
            if step * ten >= below:
                return
            yield step * ten
        ten *= 10


def cuts(counts: NDArray[Any], factor: int, *, balanced: bool) -> Iterator[tuple[int, int]]:
    """The usual sizes that a ranked set with so many patches of each class can be cut to: images per class, and patches.

    >>> import numpy as np
    >>> list(cuts(np.array([40, 40]), 2, balanced=True)), list(cuts(np.array([40, 12]), 2, balanced=True))
    ([(1, 8), (2, 16), (5, 40)], [(1, 8), (2, 16)])
    """
    there = counts[counts > 0] if balanced else counts
    each = factor**2 * len(there)  # patches, where there is one image of every class
    most = int(there.min()) / factor**2 if balanced else int(counts.sum()) / each
    return ((ipc, ipc * each) for ipc in usual_sizes(most))
