"""What a study found out, as a table: means with their spread, averages, differences, and who is ahead beyond noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt
from statistics import mean, stdev

from condense_once.studies.running import State
from condense_once.studies.study import Axis, Study

# A t statistic above which a mean is above zero with 95 % confidence, one-sided, for 1, 2, 3 … degrees of freedom.
_SURE = (
    6.31,
    2.92,
    2.35,
    2.13,
    2.02,
    1.94,
    1.89,
    1.86,
    1.83,
    1.81,
    1.80,
    1.78,
    1.77,
    1.76,
    1.75,
    1.75,
    1.74,
    1.73,
    1.73,
)
SURE = 1.72  # for more
RULE_AXES: tuple[Axis, ...] = ("rule", "method", "balance")
AVERAGE, DIFFERENCE = "Avg.", "Diff."

Runs = Mapping[int, float]  # accuracies as shares of one, by the number of the repeat
Published = Callable[[Mapping[Axis, str]], float | None]


@dataclass(frozen=True)
class Entry:
    """One entry of a table. A difference is one between means, and has no spread."""

    runs: Runs
    expected: int  # how many runs there will be
    failed: int = 0
    seconds: float = 0.0
    best: bool = False  # of all rules at its place
    ahead: bool = False  # ours, and ahead of all other rules beyond noise
    published: float | None = None  # what the paper has there, if that was asked for
    difference: float | None = None

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


def make_table(study: Study, states: Sequence[State], published: Published | None = None) -> Table:
    """The table that a study declares, of what is known so far; `published` finds what the paper has at a place."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[State]] = {}
    for state in states:
        place = tuple(tuple(state.cell.at(axis) for axis in axes) for axes in (study.rows, study.columns))
        groups.setdefault((place[0], place[1]), []).append(state)
    entries = {place: _entry(group, published) for place, group in groups.items()}
    contests: dict[tuple[str, ...], list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for place, group in groups.items():
        others = [axis for axis in (*study.rows, *study.columns) if axis not in RULE_AXES]
        contests.setdefault(tuple(group[0].cell.at(axis) for axis in others), []).append(place)
    for places in contests.values():
        ours = next((place for place in places if groups[place][0].cell.rule.name == study.ours), None)
        entries.update(_judged({place: entries[place] for place in places}, ours))
    columns = list(dict.fromkeys(column for _, column in groups))
    rows = [
        Row(labels, tuple(entries.get((labels, column), Entry({}, 0)) for column in columns))
        for labels in dict.fromkeys(row for row, _ in groups)
    ]
    if study.columns == ("rule",) and study.rows[-1] == "size":
        rows = _with_averages(rows, columns.index((study.ours,)) if (study.ours,) in columns else None)
    named = [tuple(study.called(word) for word in column) for column in columns]
    return Table(
        title=study.summary,
        axes=study.rows,
        columns=tuple(", ".join(column) for column in named),
        rows=tuple(replace(row, labels=tuple(map(study.called, row.labels))) for row in rows),
        notes=tuple(_notes(study, states)),
    )


def is_ahead(ours: Runs, other: Runs) -> bool:
    """Whether one is ahead beyond noise: by a t test on the differences of the repeats that both have, 95 % one-sided.

    >>> is_ahead({0: 0.42, 1: 0.43, 2: 0.42}, {0: 0.30, 1: 0.32, 2: 0.29}), is_ahead({0: 0.5, 1: 0.3}, {0: 0.3, 1: 0.4})
    (True, False)
    """
    differences = [ours[repeat] - other[repeat] for repeat in ours if repeat in other]
    if len(differences) < 2:
        return False
    error = stdev(differences) / sqrt(len(differences))
    degrees = len(differences) - 1
    return mean(differences) > error * (_SURE[degrees - 1] if degrees <= len(_SURE) else SURE)


def _entry(group: Sequence[State], published: Published | None) -> Entry:
    done = [state for state in group if state.done]
    return Entry(
        runs={
            state.cell.repeat: float(state.measured.result["accuracy"])
            for state in done
            if state.measured and state.measured.result
        },
        expected=len(group),
        failed=sum(state.error is not None for state in group),
        seconds=sum(state.measured.seconds for state in done if state.measured),
        published=None if published is None else published(dict(group[0].cell.place)),
    )


def _judged(
    entries: Mapping[tuple[tuple[str, ...], tuple[str, ...]], Entry],
    ours: tuple[tuple[str, ...], tuple[str, ...]] | None,
) -> Mapping[tuple[tuple[str, ...], tuple[str, ...]], Entry]:
    """The same entries of all rules at one place, with the best marked, and ours if it is ahead of every other."""
    known = {place: entry for place, entry in entries.items() if entry.runs}
    if len(known) < 2:
        return entries
    best = max(entry.mean for entry in known.values())
    judged = {place: replace(entry, best=entry.mean == best) for place, entry in known.items()}
    if ours in judged:
        others = (entry for place, entry in known.items() if place != ours)
        judged[ours] = replace(judged[ours], ahead=all(is_ahead(known[ours].runs, other.runs) for other in others))
    return {**entries, **judged}


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
        seconds=sum(entry.seconds for entry in entries),
        published=mean(told) if len(told) == len(entries) else None,
    )


def _difference(entry: Entry, ours: Entry) -> Entry:
    told = (entry.published, ours.published)
    return Entry(
        {},
        expected=0,
        difference=entry.mean - ours.mean,
        published=None if told[0] is None or told[1] is None else told[0] - told[1],
    )


def _notes(study: Study, states: Sequence[State]) -> Iterable[str]:
    counts = sorted({len(_entry(group, None).runs) for group in _by_place(states)})
    tested = sorted({f"{result['test_images']} images of {result['test']}" for result in _results(states)})
    n = "" if not counts else f"; n = {counts[0]}" + (f" to {counts[-1]}" if len(counts) > 1 else "")
    where = f", tested on {' and '.join(tested)}" if tested else ""
    yield f"Accuracy in %, mean ± sample deviation by the protocol {study.protocol!r}{where}{n}."
    missing, failed = (
        sum(not state.done and state.error is None for state in states),
        sum(state.error is not None for state in states),
    )
    if missing or failed:
        yield f"{missing} of {len(states)} trainings are still missing, and {failed} failed."
    yield f"* {study.called(study.ours)} is ahead of every other rule: paired t test over repeats, 95 %, one-sided."


def _by_place(states: Sequence[State]) -> Iterable[list[State]]:
    groups: dict[object, list[State]] = {}
    for state in states:
        groups.setdefault(state.cell.place, []).append(state)
    return groups.values()


def _results(states: Sequence[State]) -> Iterable[Mapping[str, object]]:
    return (
        state.measured.result for state in states if state.measured is not None and state.measured.result is not None
    )
