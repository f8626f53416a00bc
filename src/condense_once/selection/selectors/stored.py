"""The order that a set is stored in: that of its ranking, or of its making if it is nested."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.selection.selectors.registry import SELECTORS, SelectorInfo


def first_positions(values: NDArray[Any], count: int, **_: object) -> NDArray[np.int64]:
    """The `count` patches that are stored first, given the positions of some.

    >>> first_positions(np.array([7, 2, 5]), 2).tolist()
    [1, 2]
    """
    return np.argsort(values, kind="stable")[:count].astype(np.int64)


STORED = SELECTORS.add(
    SelectorInfo(
        "stored",
        "the first in the order of the file, that of a ranked or nested set",
        metric="random",
        pick=first_positions,
        reads="positions",
    )
)
