"""Orders: the patches of a set, best first. Every prefix of an order is the selection of that size."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.subset import rank_within_class

Prefer = Literal["easy", "hard"]


def order_rows(
    scores: NDArray[Any],
    labels: NDArray[Any],
    *,
    easy: Literal["low", "high"],
    prefer: Prefer,
    balanced: bool,
    index: NDArray[Any] | None = None,
    ties: Literal["first", "last"] = "first",
) -> NDArray[np.int64]:
    """Rows from best to worst, `[N]`; ties go to the smallest `index`, by default to the first row, or to the largest.

    Balanced, the classes take turns in class order: the best of each, then the second best of each, and so on, so that the
    first k·C rows are the best k of every class. Otherwise the best come first, whatever their class.

    >>> scores, labels = np.array([0.3, 0.1, 0.2, 0.9]), np.array([0, 0, 0, 1])
    >>> order_rows(scores, labels, easy="low", prefer="easy", balanced=False).tolist()
    [1, 2, 0, 3]
    >>> order_rows(scores, labels, easy="low", prefer="easy", balanced=True).tolist()
    [1, 3, 2, 0]
    """
    ascending = (easy == "low") == (prefer == "easy")
    place = np.arange(len(scores)) if index is None else np.asarray(index, np.int64)
    ranked = np.lexsort((place if ties == "first" else -place, scores if ascending else -scores))
    if not balanced:
        return ranked
    return ranked[np.lexsort((labels[ranked], rank_within_class(labels[ranked])))]
