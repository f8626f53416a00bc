"""Which epochs of a scoring run a metric averages over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.text import plural

_WRITTEN = re.compile(r"top(?P<best>[0-9]{1,9})/(?P<among>[0-9]{1,9})|(?P<first>[0-9]{1,9})-(?P<last>[0-9]{1,9})|all")


@dataclass(frozen=True)
class Epochs:
    """Some epochs of a run, counted from 0, from `top`, `range`, `all` or `parse`; `str` writes them back.

    >>> [str(Epochs.parse(text)) for text in ("top10/100", "0-9", "all")]
    ['top10/100', '0-9', 'all']
    >>> correct = np.array([[0, 0, 1], [1, 1, 0], [0, 0, 1], [0, 1, 1]], bool)  # 1, 2, 1 and 2 of 3 patches
    >>> Epochs.top(3, among=4).choose(correct).tolist()  # ties go to the earlier epoch
    [0, 1, 3]
    """

    start: int = 0
    stop: int | None = None  # exclusive; None: to the end
    best: int | None = None  # of these, only so many, with the highest training accuracy

    def __post_init__(self) -> None:
        if self.stop is None:
            if self.start != 0 or self.best is not None:
                raise BadOption("Epochs without `stop` are all epochs; use Epochs.top or Epochs.range for others.")
        elif self.best is None:
            if not 0 <= self.start < self.stop:
                raise BadOption(
                    f"Epochs {self.start} to {self.stop - 1} are not a range; count from 0, first before last."
                )
        elif self.start != 0 or not 1 <= self.best <= self.stop:
            raise BadOption(
                f"The best {self.best} epochs cannot be chosen among the first {self.stop}; choose from 1 to {self.stop}."
            )

    @classmethod
    def top(cls, best: int, among: int) -> Epochs:
        """The epochs with the highest training accuracy among the first ones; ties go to the earlier."""
        return cls(0, among, best)

    @classmethod
    def range(cls, first: int, last: int) -> Epochs:
        """From the first to the last, inclusive."""
        return cls(first, last + 1)

    @classmethod
    def all(cls) -> Epochs:
        return cls()

    @classmethod
    def parse(cls, text: str) -> Epochs:
        found = _WRITTEN.fullmatch(text.strip())
        if not found:
            raise BadOption(f"Epochs are written as top10/100, 0-9 or all, not {text!r}.")
        if found["best"]:
            return cls.top(int(found["best"]), int(found["among"]))
        return cls.range(int(found["first"]), int(found["last"])) if found["first"] else cls.all()

    def __str__(self) -> str:
        if self.stop is None:
            return "all"
        return f"{self.start}-{self.stop - 1}" if self.best is None else f"top{self.best}/{self.stop}"

    def choose(self, correct: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The indices of these epochs, ascending, given the correct predictions of every epoch, `[E, N]`."""
        if self.stop is not None and self.stop > len(correct):
            raise BadOption(
                f"The epochs {str(self)!r} need a run of {plural(self.stop, 'epoch')}, but {len(correct)} were recorded;"
                " record a longer run or choose earlier epochs."
            )
        epochs = np.arange(self.start, len(correct) if self.stop is None else self.stop)
        if self.best is None:
            return epochs
        right = np.array([np.count_nonzero(correct[epoch]) for epoch in epochs])
        return epochs[np.sort(np.argsort(-right, kind="stable")[: self.best])]


def mean_over(values: NDArray[Any], epochs: NDArray[np.int64], what: str) -> NDArray[np.float32]:
    """The mean of `values` [E, N] over some epochs, `[N]`; row by row, so that a memory-mapped file need not fit in memory."""
    total = np.zeros(values.shape[1])
    for epoch in epochs:
        total += values[epoch]
    if not np.isfinite(total).all():
        raise BadOption(f"The recorded {what} contains NaN or infinity; record the scoring run again.")
    return (total / len(epochs)).astype(np.float32)
