"""What a study found out, as a table: means with their spread, averages, differences, and who is ahead beyond noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt
from statistics import mean, stdev

from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.studies.notes import listed, notes_on
from condense_once.studies.running import State, grouped
from condense_once.studies.study import Axis, Study

# A t statistic above which a mean is above zero with 95 % confidence, one-sided, for 1, 2, 3 … degrees of freedom.
_SURE = (
    6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75, 1.75, 1.74, 1.73, 1.73,
)  # fmt: skip
SURE = 1.72  # for more
RULE_AXES: tuple[Axis, ...] = ("rule", "method", "balance")
AVERAGE, DIFFERENCE = "Avg.", "Diff."

Runs = Mapping[int, float]  # accuracies as shares of one, by the number of the repeat
Place = tuple[str, ...]  # labels of the row and of the column
Published = Callable[[Mapping[Axis, str]], float | None]


@dataclass(frozen=True)
class Entry:
    """One entry of a table. A difference is a mean over repeats, and has no spread."""

    runs: Runs
    expected: int  # how many runs there will be
    seconds: float = 0.0
    best: bool = False  # of all rules at its place
    ahead: bool = False  # ours, and ahead of all other rules beyond noise
    published: float | None = None  # what the paper has there, if that was asked for
    difference: float | None = None
    test: str = ""  # the source of the test images

    @property
    def mean(self) -> float:
        if self.difference is not None:
            return self.difference
        return mean(self.runs.values()) if self.runs else nan

    @property
    def std(self) -> float:
        return stdev(self.runs.values()) if len(self.runs) > 1 else nan


@dataclass(frozen=True)
class Row:
    labels: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    title: str
    axes: tuple[str, ...]  # what the labels of the rows are
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    protocol: str = ""  # its id

    @property
    def uneven(self) -> bool:
        """Whether entries are means of different numbers of runs."""
        return len({len(entry.runs) for row in self.rows for entry in row.entries if entry.runs}) > 1


def make_table(study: Study, states: Sequence[State], published: Published | None = None) -> Table:
    """The table that a study declares, of what is known so far; `published` finds what the paper has at a place."""
    rows, columns = (list(grouped(states, axes)) for axes in (study.rows, study.columns))
    entries = {
        place: _entry(group, published) for place, group in grouped(states, (*study.rows, *study.columns)).items()
    }
    contest: tuple[Axis, ...] = tuple(axis for axis in (*study.rows, *study.columns) if axis not in RULE_AXES)
    for rivals in grouped(states, contest).values():
        places = grouped(rivals, (*study.rows, *study.columns))
        ours = next((place for place, group in places.items() if group[0].cell.rule.name == study.ours), None)
        entries.update(_judged({place: entries[place] for place in places}, ours, study.dynamics))
    lines = [Row(row, tuple(entries.get((*row, *column), Entry({}, 0)) for column in columns)) for row in rows]
    if study.columns == ("rule",) and study.rows[-1] == "size":
        lines = _with_averages(lines, columns.index((study.ours,)) if (study.ours,) in columns else None)
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
        seconds=sum(state.measured.seconds for state in group if state.measured is not None),
        published=None if published is None else published(dict(group[0].cell.place)),
        test=listed(state.cell.subject.test.name for state in group),
    )


def _judged(entries: Mapping[Place, Entry], ours: Place | None, dynamics: int) -> Mapping[Place, Entry]:
    """The same entries of all rules at one place, with the best marked, and ours if it is ahead of every other.

    They are judged by the repeats that all of them have; a rule without any is left out.
    """
    rivals = {place: entry for place, entry in entries.items() if entry.runs}
    shared = set.intersection(*(set(entry.runs) for entry in rivals.values())) if rivals else set()
    if len(rivals) < 2 or not shared:
        return entries
    means = {place: mean(entry.runs[repeat] for repeat in shared) for place, entry in rivals.items()}
    best = max(means.values())
    judged = {place: replace(entry, best=means.get(place) == best) for place, entry in entries.items()}
    if ours in rivals:
        others = (entry.runs for place, entry in rivals.items() if place != ours)
        ahead = all(is_ahead(entries[ours].runs, other, dynamics) for other in others)
        judged[ours] = replace(judged[ours], ahead=ahead)
    return judged


def _with_averages(rows: Iterable[Row], ours: int | None) -> list[Row]:
    """The rows of each set followed by their average over sizes, and by how far each rule is from ours."""
    sets: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        sets.setdefault(row.labels[:-1], []).append(row)
    found = []
    for labels, members in sets.items():
        found += members
        average = Row((*labels, AVERAGE), tuple(map(_average, zip(*(row.entries for row in members), strict=True))))
        if len(members) > 1:
            found.append(average)
        if ours is not None:
            lead = average.entries[ours]
            found.append(Row((*labels, DIFFERENCE), tuple(_difference(entry, lead) for entry in average.entries)))
    return found


def _average(entries: Sequence[Entry]) -> Entry:
    """Repeat by repeat, of those that all sizes have."""
    shared = set.intersection(*(set(entry.runs) for entry in entries))
    runs = {repeat: mean(entry.runs[repeat] for entry in entries) for repeat in sorted(shared)}
    told = [entry.published for entry in entries if entry.published is not None]
    return Entry(
        runs,
        expected=min(entry.expected for entry in entries),
        published=mean(told) if len(told) == len(entries) else None,
        test=listed(entry.test for entry in entries),
    )


def _difference(entry: Entry, ours: Entry) -> Entry:
    """Over the repeats that both have."""
    shared = [entry.runs[repeat] - ours.runs[repeat] for repeat in entry.runs if repeat in ours.runs]
    told = (entry.published, ours.published)
    return Entry(
        {},
        expected=0,
        difference=mean(shared) if shared else nan,
        published=None if told[0] is None or told[1] is None else told[0] - told[1],
        test=entry.test,
    )


def _marks(study: Study, rows: Iterable[Row]) -> Iterable[str]:
    if any(entry.ahead for row in rows for entry in row.entries):
        ours = study.called(study.ours)
        yield f"* {ours} is ahead of every other rule that was measured: paired t test over scoring runs, 95 %, one-sided."
