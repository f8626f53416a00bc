"""Which real images a step sees. Every choice is a function of the seed and a number, so nothing has to be remembered."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.data.split import Rows as Rows
from condense_once.data.split import rows_by_class as rows_by_class
from condense_once.kmeans import k_means
from condense_once.train.seeds import generator


class Shuffled:
    """Batches of shuffled rows, without replacement; a batch that would be short is dropped.

    The k-th batch depends on the seed and k alone. Rows that are fewer than a batch are one batch together.

    >>> batches = Shuffled(np.arange(5), 2, 0, "example")
    >>> sorted(np.concatenate([batches[0], batches[1]]).tolist()) == sorted(set(batches[0]) | set(batches[1]))
    True
    """

    def __init__(self, rows: Rows, batch: int, seed: int, *purpose: str | int) -> None:
        self._rows, self._batch = rows, min(batch, len(rows))
        self.per_epoch = len(rows) // self._batch
        self._order = lru_cache(maxsize=1)(lambda epoch: _permutation(len(rows), seed, *purpose, epoch))

    def __getitem__(self, number: int) -> Rows:
        epoch, place = divmod(number, self.per_epoch)
        return self._rows[self._order(epoch)[place * self._batch : (place + 1) * self._batch]]


def representatives(features: NDArray[np.float32], count: int, rng: np.random.Generator) -> Rows:
    """The rows nearest to the centres of `count` k-means clusters of `features` [n, d], one a cluster, in order of row.

    Of equals it is the first.

    >>> representatives(np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]), 2, np.random.default_rng(0)).tolist()
    [1, 4]
    """
    return k_means(features, count, rng).nearest(ties=np.arange(len(features)))


def some(rows: Rows, most: int, seed: int, *purpose: str | int) -> Rows:
    """At most so many of the rows, drawn at random and in their order; all of them for 0.

    >>> some(np.arange(5), 0, 0).tolist(), len(some(np.arange(100), 7, 0))
    ([0, 1, 2, 3, 4], 7)
    """
    if not most or len(rows) <= most:
        return rows
    drawn: Rows = np.sort(rows[_permutation(len(rows), seed, *purpose)[:most]])
    return drawn


def numpy_rng(seed: int, *purpose: str | int) -> np.random.Generator:
    return np.random.default_rng(generator(seed, *purpose).initial_seed())


def _permutation(count: int, seed: int, *purpose: str | int) -> Rows:
    order: Rows = torch.randperm(count, generator=generator(seed, *purpose)).numpy()
    return order
