"""What a study found out, as a table: means with their spread, averages, differences, and who is ahead beyond noise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan, sqrt
from statistics import mean, stdev
from typing import NamedTuple, TypeVar

from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.studies.notes import listed, notes_on
from condense_once.studies.run import State, grouped
from condense_once.studies.study import Axis, Study

# A t statistic above which a mean is above zero with 95 % confidence, one-sided, for 1, 2, 3 … degrees of freedom.
_SURE = (
    6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75, 1.75, 1.74, 1.73, 1.73,
)  # fmt: skip
SURE = 1.72  # for more
RULE_AXES: tuple[Axis, ...] = ("rule", "method", "balance")
AVERAGE, DIFFERENCE, GAIN = "Avg.", "Diff.", "gain"

K = TypeVar("K", bound=Hashable)
Runs = Mapping[int, float]  # accuracies as shares of one, by the number of the repeat


class Number(NamedTuple):
    """What the paper has."""

    accuracy: float  # a share of one
    spread: float | None = None


Published = Callable[[Mapping[Axis, str]], Number | None]


@dataclass(frozen=True)
class Entry:
    """One entry of a table. A difference is a mean over repeats, and has no spread."""

    runs: Runs
    expected: int  # how many runs there will be
    seconds_of: Mapping[str, float] = field(default_factory=dict)  # each evaluation, by its key
    best: bool = False  # of all rules at its place
    ahead: bool = False  # ours, and ahead of all other rules beyond noise
    published: Number | None = None  # what the paper has there, if that was asked for
    difference: float | None = None
    test: str = ""  # the source of the test images
    whole: bool = False  # of all patches, so that rules do not matter

    @property
    def mean(self) -> float:
        if self.difference is not None:
            return self.difference
        return mean(self.runs.values()) if self.runs else nan

    @property
    def seconds(self) -> float:
        return sum(self.seconds_of.values())

    @property
    def std(self) -> float:
        return stdev(self.runs.values()) if len(self.runs) > 1 else nan


@dataclass(frozen=True)
class Row:
    labels: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def whole(self) -> bool:
        return any(entry.whole for entry in self.entries)

    @property
    def seconds(self) -> float:
        """Of all evaluations, also of those that entries share, once."""
        return sum({key: took for entry in self.entries for key, took in entry.seconds_of.items()}.values())


@dataclass(frozen=True)
class Table:
    title: str
    axes: tuple[str, ...]  # what the labels of the rows are
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    protocol: str = ""  # its id

    @property
    def best(self) -> set[tuple[int, int]]:
        """Row and column of the best entries, where labels are the first columns."""
        return {
            (row, len(self.axes) + column)
            for row, line in enumerate(self.rows)
            for column, entry in enumerate(line.entries)
            if entry.best
        }


def make_table(study: Study, states: Sequence[State], published: Published | None = None) -> Table:
    """The table that a study declares, of what is known so far; `published` finds what the paper has at a place."""
    rows, columns = (list(grouped(states, axes)) for axes in (study.rows, study.columns))
    entries = {
        place: _entry(group, published) for place, group in grouped(states, (*study.rows, *study.columns)).items()
    }
    contest: tuple[Axis, ...] = tuple(axis for axis in (*study.rows, *study.columns) if axis not in RULE_AXES)
    for rivals in grouped(states, contest).values():
        places = grouped(rivals, (*study.rows, *study.columns))
        our_place = next((place for place, group in places.items() if group[0].cell.rule.name == study.ours), None)
        entries.update(_judged({place: entries[place] for place in places}, our_place, study.dynamics))
    lines = [Row(row, tuple(entries.get((*row, *column), Entry({}, 0)) for column in columns)) for row in rows]
    if study.columns == ("rule",) and study.rows[-1] == "size":
        ours = columns.index((study.ours,)) if (study.ours,) in columns else None
        lines = _with_averages(lines, ours, study.dynamics)
    if study.columns == ("balance",) and len(columns) == 2:
        lines = _with_gains(lines, columns.index(("balanced",)))
        columns.append((GAIN,))
    return Table(
        title=study.summary,
        axes=study.rows,
        columns=tuple(", ".join(map(study.called, column)) for column in columns),
        rows=tuple(replace(row, labels=tuple(map(study.called, row.labels))) for row in lines),
        notes=(*notes_on(study, states), *_marks(study, lines)),
        protocol=PROTOCOLS.get(study.protocol).id,
    )


def is_ahead(ours: Runs, other: Runs, dynamics: int | None = None) -> bool:
    """Whether one is ahead beyond noise: by a t test on the differences of the repeats that both have, 95 % one-sided.

    Repeats that share a scoring run, one of `dynamics` in turn, are no independent witnesses: they count as one, their mean.

    >>> is_ahead({0: 0.42, 1: 0.43, 2: 0.42}, {0: 0.30, 1: 0.32, 2: 0.29}), is_ahead({0: 0.5, 1: 0.3}, {0: 0.3, 1: 0.4})
    (True, False)
    """
    witnesses: dict[int, list[float]] = {}
    for repeat in ours:
        if repeat in other:
            witnesses.setdefault(repeat % dynamics if dynamics else repeat, []).append(ours[repeat] - other[repeat])
    differences = [mean(several) for several in witnesses.values()]
    if len(differences) < 2:
        return False
    error = stdev(differences) / sqrt(len(differences))
    degrees = len(differences) - 1
    return mean(differences) > error * (_SURE[degrees - 1] if degrees <= len(_SURE) else SURE)


def _entry(group: Sequence[State], published: Published | None) -> Entry:
    return Entry(
        runs={state.cell.repeat: state.accuracy for state in group if state.accuracy is not None},
        expected=len(group),
        seconds_of={
            state.selected.evaluation: state.measured.seconds
            for state in group
            if state.selected is not None and state.measured is not None
        },
        published=None if published is None else published(dict(group[0].cell.place)),
        test=listed(state.cell.subject.test.name for state in group),
        whole=group[0].cell.whole,
    )


def _judged(entries: Mapping[K, Entry], ours: K | None, dynamics: int) -> dict[K, Entry]:
    """The same entries of all rules at one place, with the best marked, and ours if it is ahead of every other.

    They are judged by the repeats that all of them have; a rule without any is left out.
    """
    known = {place: entry.runs for place, entry in entries.items() if entry.runs}
    shared = set.intersection(*map(set, known.values())) if known else set()
    if len(known) < 2 or not shared or all(entry.whole for entry in entries.values()):
        return dict(entries)
    rivals = {place: {repeat: runs[repeat] for repeat in sorted(shared)} for place, runs in known.items()}
    means = {place: mean(runs.values()) for place, runs in rivals.items()}
    best = max(means.values())
    judged = {place: replace(entry, best=means.get(place) == best) for place, entry in entries.items()}
    if ours is not None and ours in rivals:
        others = (runs for place, runs in rivals.items() if place != ours)
        judged[ours] = replace(judged[ours], ahead=all(is_ahead(rivals[ours], other, dynamics) for other in others))
    return judged


def _with_averages(rows: Iterable[Row], ours: int | None, dynamics: int) -> list[Row]:
    """The rows of each set followed by their average over sizes, and by how far each rule is from ours.

    All patches are no size that a rule could choose, so they do not count.
    """
    sets: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        sets.setdefault(row.labels[:-1], []).append(row)
    found = []
    for labels, members in sets.items():
        found += members
        parts = [row.entries for row in members if not row.whole]
        if not parts:
            continue
        averages = [_average(entries) for entries in zip(*parts, strict=True)]
        if len(parts) > 1:
            judged = _judged(dict(enumerate(averages)), ours, dynamics)
            found.append(Row((*labels, AVERAGE), tuple(judged.values())))
        if ours is not None:
            differences = (_difference(entry, averages[ours]) for entry in averages)
            found.append(Row((*labels, DIFFERENCE), tuple(differences)))
    return found


def _with_gains(rows: Iterable[Row], balanced: int) -> list[Row]:
    """Rows of two entries, without balance and with it, and in the end of each how much it gains."""
    return [
        replace(row, entries=(*row.entries, _difference(row.entries[balanced], row.entries[1 - balanced])))
        for row in rows
    ]


def _average(entries: Sequence[Entry]) -> Entry:
    """Repeat by repeat, of those that all sizes have."""
    shared = set.intersection(*(set(entry.runs) for entry in entries))
    runs = {repeat: mean(entry.runs[repeat] for entry in entries) for repeat in sorted(shared)}
    told = [entry.published.accuracy for entry in entries if entry.published is not None]
    return Entry(
        runs,
        expected=min(entry.expected for entry in entries),
        published=Number(mean(told)) if len(told) == len(entries) else None,
        test=listed(entry.test for entry in entries),
    )


def _difference(entry: Entry, ours: Entry) -> Entry:
    """Over the repeats that both have."""
    shared = [entry.runs[repeat] - ours.runs[repeat] for repeat in entry.runs if repeat in ours.runs]
    told = None
    if entry.published is not None and ours.published is not None:
        told = Number(entry.published.accuracy - ours.published.accuracy)
    return Entry(
        {},
        expected=0,
        difference=mean(shared) if shared else nan,
        published=told,
        test=entry.test,
    )


def _marks(study: Study, rows: Iterable[Row]) -> Iterable[str]:
    if any(entry.ahead for row in rows for entry in row.entries):
        ours = study.called(study.ours)
        yield f"* {ours} is ahead of every other rule that was measured: paired t test over scoring runs, 95 %, one-sided."
