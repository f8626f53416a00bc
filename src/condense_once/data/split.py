"""Subsets of a split: rows by class, and a held-out part of the training images to evaluate on instead of the test split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.data.source import Source, Split
from condense_once.errors import BadOption
from condense_once.text import plural

Rows = NDArray[np.int64]
HOLDOUT_FRACTION = 0.1
MAX_PER_CLASS = 100  # held-out images: enough to tell runs apart, few to lose


@dataclass(frozen=True)
class SplitSubset:
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


def rows_by_class(labels: NDArray[np.int64], classes: int) -> list[Rows]:
    """The rows of each class, in dataset order.

    >>> [rows.tolist() for rows in rows_by_class(np.array([2, 0, 2, 0]), 3)]
    [[1, 3], [], [0, 2]]
    """
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=classes))[:-1])


def hold_out(source: Source) -> tuple[Source, Source]:
    """Hold out the last tenth of each class: a source of the other training images, and one with these to test on."""
    each = rows_by_class(np.asarray(source.train.labels), len(source.classes))
    for name, rows in zip(source.classes, each, strict=True):
        if len(rows) * HOLDOUT_FRACTION < 1:
            raise BadOption(
                f"Class {name!r} of {source.name} has {plural(len(rows), 'training image')}, too few to hold out a tenth for"
                " evaluation; leave out `eval_every`."
            )
    ends = [len(rows) - min(MAX_PER_CLASS, int(len(rows) * HOLDOUT_FRACTION)) for rows in each]
    train = np.sort(np.concatenate([rows[:end] for rows, end in zip(each, ends, strict=True)]))
    held_out = np.sort(np.concatenate([rows[end:] for rows, end in zip(each, ends, strict=True)]))
    return (
        replace(source, splits={"train": SplitSubset(source.train, train)}),
        replace(source, splits={"test": SplitSubset(source.train, held_out)}),
    )


def has_holdout(source: Source) -> bool:
    """Whether part of the training images is held out."""
    return isinstance(source.train, SplitSubset)


def toggle_holdout(source: Source) -> Source | None:
    """The source with its held-out images back or, if there are none, without them; None if they are too few."""
    if isinstance(source.train, SplitSubset):
        return replace(source, splits={"train": source.train.split})
    try:
        return hold_out(source)[0]
    except BadOption:
        return None
