"""The table of a study: labelled rows of accuracies, each a mean over runs with its spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from statistics import mean, stdev
from typing import NamedTuple

Runs = Mapping[int, float]  # accuracies as fractions, by repeat


class PublishedNumber(NamedTuple):
    """An accuracy of the paper, as a fraction."""

    accuracy: float
    std: float | None = None


@dataclass(frozen=True)
class Entry:
    """One accuracy, or a difference of two, which is a mean over repeats without a std."""

    runs: Runs
    expected: int  # how many runs there will be
    seconds_of: Mapping[str, float] = field(default_factory=dict)  # of each evaluation, by its key
    best: bool = False  # of all rules at its position
    ahead: bool = False  # our rule, significantly better than every other
    published: PublishedNumber | None = None  # the paper's number, if it is to be shown
    difference: float | None = None
    test: str = ""  # the source of the test images
    whole: bool = False  # of all patches, so that rules do not matter

    @property
    def mean(self) -> float:
        if self.difference is not None:
            return self.difference
        return mean(self.runs.values()) if self.runs else nan

    @property
    def std(self) -> float:
        return stdev(self.runs.values()) if len(self.runs) > 1 else nan

    @property
    def seconds(self) -> float:
        return sum(self.seconds_of.values())


@dataclass(frozen=True)
class Row:
    labels: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def whole(self) -> bool:
        return any(entry.whole for entry in self.entries)

    @property
    def seconds(self) -> float:
        """Of all evaluations; those that entries share count once."""
        return sum({key: took for entry in self.entries for key, took in entry.seconds_of.items()}.values())


@dataclass(frozen=True)
class Table:
    """Rows of labels and entries; a table without `columns` has labels only."""

    title: str
    axes: tuple[str, ...]  # names of the label columns
    columns: tuple[str, ...]  # names of the entry columns
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    protocol: str = ""  # its id
    name: str = ""  # of the study

    @property
    def runs(self) -> int | None:
        """How many runs every accuracy is the mean of; None if some are of more than others or not complete."""
        measured = [entry for row in self.rows for entry in row.entries if entry.runs]
        counts = {len(entry.runs) for entry in measured}
        complete = all(len(entry.runs) == entry.expected for entry in measured)
        return counts.pop() if len(counts) == 1 and complete else None

    @property
    def best(self) -> set[tuple[int, int]]:
        """Row and column of the best entries, counting the label columns."""
        return {
            (row, len(self.axes) + column)
            for row, line in enumerate(self.rows)
            for column, entry in enumerate(line.entries)
            if entry.best
        }
