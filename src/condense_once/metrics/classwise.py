"""Scores that are computed within each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import check_features, check_labels

ClassScore = Callable[[NDArray[np.float64]], NDArray[Any]]  # features of a class [n, d] -> [n]


def in_each_class(features: NDArray[Any], labels: NDArray[Any], score: ClassScore) -> NDArray[np.float64]:
    """Apply `score` to the features of each class and restore the order of the patches, `[N]`.

    >>> features, labels = np.array([[1.0], [5.0], [2.0]]), np.array([1, 0, 1])
    >>> in_each_class(features, labels, lambda members: members.sum() + 0 * members[:, 0]).tolist()
    [3.0, 5.0, 3.0]
    """
    check_features(features)
    check_labels(labels, len(features))
    scores = np.empty(len(features))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        scores[members] = score(features[members].astype(np.float64))
    return scores


def positions(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The position of each element in an order: the inverse permutation.

    >>> positions(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places
