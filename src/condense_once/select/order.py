"""Orders: the patches of a set, best first. Every prefix of an order is the selection of that size."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Prefer = Literal["easy", "hard"]


def order_rows(
    scores: NDArray[Any],
    labels: NDArray[Any],
    *,
    easy: Literal["low", "high"],
    prefer: Prefer,
    balanced: bool,
    index: NDArray[Any] | None = None,
) -> NDArray[np.int64]:
    """Rows from best to worst, `[N]`; of equal scores the smaller `index` goes first, or without any the smaller row.

    Balanced, the classes take turns in class order: the best of each, then the second best of each, and so on, so that the
    first k·C rows are the best k of every class. Otherwise the best go first whatever their class.

    >>> scores, labels = np.array([0.3, 0.1, 0.2, 0.9]), np.array([0, 0, 0, 1])
    >>> order_rows(scores, labels, easy="low", prefer="easy", balanced=False).tolist()
    [1, 2, 0, 3]
    >>> order_rows(scores, labels, easy="low", prefer="easy", balanced=True).tolist()
    [1, 3, 2, 0]
    """
    rising = (easy == "low") == (prefer == "easy")
    ranked = np.lexsort((np.arange(len(scores)) if index is None else index, scores if rising else -scores))
    if not balanced:
        return ranked
    return ranked[np.lexsort((labels[ranked], turns(labels[ranked])))]


def turns(labels: NDArray[Any]) -> NDArray[np.int64]:
    """For every row, how many rows before it have the same label.

    >>> turns(np.array([1, 0, 1, 1, 0])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    before = np.empty(len(labels), np.int64)
    before[order] = np.arange(len(labels)) - np.concatenate([[0], ends])[labels[order]]
    return before


def class_counts(labels: NDArray[Any], count: int, classes: int) -> NDArray[np.int64]:
    """How many patches of each class make `count` in balance, `[C]`: one per class in turn, as long as it has any.

    >>> class_counts(np.array([0, 0, 0, 1, 2, 2]), 5, classes=3).tolist()
    [2, 1, 2]
    """
    taken = np.lexsort((labels, turns(labels)))[:count]
    return np.bincount(labels[taken], minlength=classes)
