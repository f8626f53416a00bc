"""Shuffled batches whose k-th batch is a function of the seed and k, so that no random state has to be saved."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.train.seeds import generator

Rows = NDArray[np.int64]


class ShuffledBatches:
    """Batches without replacement, reshuffled every epoch; a short last batch is dropped, unless `keep_short`.

    The k-th batch depends on the seed and k alone. Rows that are fewer than a batch make one batch.

    >>> batches = ShuffledBatches(np.arange(5), 2, 0, "example")
    >>> sorted(np.concatenate([batches[0], batches[1]]).tolist()) == sorted(set(batches[0]) | set(batches[1]))
    True
    """

    def __init__(self, rows: Rows, batch: int, seed: int, *purpose: str | int, keep_short: bool = False) -> None:
        self._rows, self._batch = rows, min(batch, len(rows))
        self.per_epoch = batches_per_epoch(len(rows), batch, keep_short=keep_short)
        self._order = lru_cache(maxsize=1)(lambda epoch: permutation(len(rows), seed, *purpose, epoch))

    def __getitem__(self, number: int) -> Rows:
        epoch, place = divmod(number, self.per_epoch)
        return self._rows[self._order(epoch)[place * self._batch : (place + 1) * self._batch]]


def batches_per_epoch(rows: int, batch: int, *, keep_short: bool) -> int:
    """Batches of one pass over so many rows.

    >>> batches_per_epoch(50_000, 64, keep_short=False), batches_per_epoch(50_000, 64, keep_short=True)
    (781, 782)
    """
    return max(1, -(-rows // batch) if keep_short else rows // batch)


def permutation(count: int, seed: int, *purpose: str | int) -> Rows:
    """A random order of `count` rows."""
    order: Rows = torch.randperm(count, generator=generator(seed, *purpose)).numpy()
    return order
