"""Shuffled batches whose k-th batch is a function of the seed and k, so that no random state has to be saved."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.train.seeds import generator

Rows = NDArray[np.int64]


class ShuffledBatches:
    """Batches without replacement, reshuffled every epoch; a short last batch is dropped.

    The k-th batch depends on the seed and k alone. Rows that are fewer than a batch make one batch.

    >>> batches = ShuffledBatches(np.arange(5), 2, 0, "example")
    >>> sorted(np.concatenate([batches[0], batches[1]]).tolist()) == sorted(set(batches[0]) | set(batches[1]))
    True
    """

    def __init__(self, rows: Rows, batch: int, seed: int, *purpose: str | int) -> None:
        self._rows, self._batch = rows, min(batch, len(rows))
        self.per_epoch = len(rows) // self._batch
        self._order = lru_cache(maxsize=1)(lambda epoch: permutation(len(rows), seed, *purpose, epoch))

    def __getitem__(self, number: int) -> Rows:
        epoch, place = divmod(number, self.per_epoch)
        return self._rows[self._order(epoch)[place * self._batch : (place + 1) * self._batch]]


def permutation(count: int, seed: int, *purpose: str | int) -> Rows:
    """A random order of `count` rows."""
    order: Rows = torch.randperm(count, generator=generator(seed, *purpose)).numpy()
    return order
