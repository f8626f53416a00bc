"""A part of the training images that is held back, to see how far a run has got without looking at the test split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.data.source import Source, Split
from condense_once.errors import BadOption

Rows = NDArray[np.int64]

SHARE = 0.1
MOST = 100  # images per class: enough to tell runs apart, and little to lose


@dataclass(frozen=True)
class Part:
    """Some rows of a split."""

    split: Split
    rows: Rows

    @property
    def labels(self) -> NDArray[np.int64]:
        return np.asarray(self.split.labels)[self.rows]

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.split.shape

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
        return self.split.take(self.rows[rows])


def hold_back(source: Source) -> tuple[Source, Source]:
    """The source without the last tenth of each class's training images, and a source that has those to test on."""
    each = rows_by_class(np.asarray(source.train.labels), len(source.classes))
    for name, rows in zip(source.classes, each, strict=True):
        if len(rows) * SHARE < 1:
            raise BadOption(
                f"Class {name!r} of {source.name} has {len(rows)} training images, too few to hold back a tenth of them for"
                " trying; leave out --eval-every."
            )
    ends = [len(rows) - min(MOST, int(len(rows) * SHARE)) for rows in each]
    kept = np.sort(np.concatenate([rows[:end] for rows, end in zip(each, ends, strict=True)]))
    held = np.sort(np.concatenate([rows[end:] for rows, end in zip(each, ends, strict=True)]))
    return (
        replace(source, splits={"train": Part(source.train, kept)}),
        replace(source, splits={"test": Part(source.train, held)}),
    )


def holds_back(source: Source) -> bool:
    """Whether a part of its training images is held back."""
    return isinstance(source.train, Part)


def held_back_otherwise(source: Source) -> Source | None:
    """The source with the images again that are held back or, where none are, without them; None if they are too few."""
    if isinstance(source.train, Part):
        return replace(source, splits={"train": source.train.split})
    try:
        return hold_back(source)[0]
    except BadOption:
        return None


def rows_by_class(labels: NDArray[np.int64], classes: int) -> list[Rows]:
    """The rows of each class, in the order of the dataset."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=classes))[:-1])
