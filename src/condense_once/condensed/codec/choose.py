"""What to spend bytes on: how many patches, and in how many layers.

Without a measured curve all patches come coarsely before any of them finely.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from condense_once.condensed.accuracy_curve import AccuracyCurve
from condense_once.condensed.codec.chunks import Chunk
from condense_once.condensed.codec.code import Code


class Cut(NamedTuple):
    """The first chunks of some groups."""

    groups: int
    patches: int
    chunks: int
    bytes: int
    accuracy: float  # expected

    @property
    def layers(self) -> float:
        """Of a patch, on average."""
        return self.chunks / self.groups


class Cuts:
    """All cuts of a stream that have the first layer of some groups, with what a curve expects of each."""

    def __init__(self, curve: AccuracyCurve, code: Code, chunks: Sequence[Chunk], patches: int) -> None:
        self._curve, self._code, self._patches = curve, code, patches
        there = np.zeros((code.layers, code.groups(patches)), np.int64)
        for chunk in chunks:
            there[chunk.layer, chunk.group] = len(chunk)
        self._sizes = there[:, : int((there[0] > 0).sum())]

    def of_groups(self, groups: int) -> tuple[list[int], Callable[[int], Cut]]:
        """The bytes up to the end of each chunk of the first `groups`, and the cut after so many chunks."""
        sizes = self._sizes[:, :groups].ravel()
        ends = np.cumsum(sizes[sizes > 0]).tolist()
        patches = min(groups * self._code.group, self._patches)

        def cut(chunks: int) -> Cut:
            expected = self._curve.predict(patches, chunks / groups, of=self._code.layers)
            return Cut(groups, patches, chunks, ends[chunks - 1], expected.accuracy)

        return ends, cut

    def best(self, limit: int) -> Cut | None:
        """The most accurate one of at most `limit` bytes; of equals the one of more patches."""
        return max(self._within(limit), key=lambda cut: (cut.accuracy, cut.groups), default=None)

    def smallest(self, accuracy: float) -> Cut | None:
        """The smallest one that is expected to reach an accuracy."""
        return min(self._reaching(accuracy), key=lambda cut: cut.bytes, default=None)

    def _within(self, limit: int) -> Iterator[Cut]:
        for groups in range(1, self._sizes.shape[1] + 1):
            ends, cut = self.of_groups(groups)
            chunks = int(np.searchsorted(ends, limit, side="right"))
            if chunks >= groups:
                yield cut(chunks)

    def _reaching(self, accuracy: float) -> Iterator[Cut]:
        for groups in range(1, self._sizes.shape[1] + 1):
            ends, cut = self.of_groups(groups)

            def accuracy_after(chunks: int, cut: Callable[[int], Cut] = cut) -> float:
                return cut(chunks).accuracy

            reached = bisect_left(range(groups, len(ends) + 1), accuracy, key=accuracy_after)
            if groups + reached <= len(ends):
                yield cut(groups + reached)
