"""From the states of cells to a table: means over runs, averages over sizes, differences, the best rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan
from statistics import mean
from typing import TypeVar

from condense_once.condensed.budget import Budget
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.studies.significance import is_ahead
from condense_once.studies.state import CellState, grouped
from condense_once.studies.study import Axis, Study
from condense_once.studies.table import Entry, PublishedNumber, Row, Table
from condense_once.studies.table_notes import join_names, notes_on

RULE_AXES: tuple[Axis, ...] = ("rule", "method", "balance")
AVERAGE, DIFFERENCE, GAIN = "Avg.", "Diff.", "gain"

K = TypeVar("K", bound=Hashable)
Published = Callable[[Mapping[Axis, str]], PublishedNumber | None]


def make_table(study: Study, states: Sequence[CellState], published: Published | None = None) -> Table:
    """The table that a study declares, of what is known so far; `published` looks up the paper's number."""
    columns = list(grouped(states, study.columns))
    entries = _entries(study, states, published)
    rows = [
        Row(row, tuple(entries.get((*row, *column), Entry({}, 0)) for column in columns))
        for row in grouped(states, study.rows)
    ]
    if study.columns == ("rule",) and study.rows[-1] == "size":
        ours = columns.index((study.reference,)) if (study.reference,) in columns else None
        rows = _with_averages(rows, ours, study.scoring_runs)
    if study.columns == ("balance",) and len(columns) == 2:
        rows = _with_gains(rows, columns.index(("balanced",)))
        columns.append((GAIN,))
    if study.columns == ("size",) and len(columns) > 1 and all(Budget.parse(size).ipc for size in study.sizes):
        rows = _with_means(study, rows, grouped(states, study.rows), published)
        columns.append((AVERAGE,))
    return Table(
        title=study.title if published is None else study.summary,
        axes=study.rows,
        columns=tuple(", ".join(map(study.label, column)) for column in columns),
        rows=tuple(replace(row, labels=tuple(map(study.label, row.labels))) for row in rows),
        notes=(*notes_on(study, states), *_note_on_marks(study, rows)),
        protocol=PROTOCOLS.get(study.protocol).id,
        name=study.name,
    )


def _entries(study: Study, states: Sequence[CellState], published: Published | None) -> dict[tuple[str, ...], Entry]:
    """The entry of each position; rules are compared with each other where all else is the same."""
    axes = (*study.rows, *study.columns)
    entries = {place: _entry(group, published) for place, group in grouped(states, axes).items()}
    shared: tuple[Axis, ...] = tuple(axis for axis in axes if axis not in RULE_AXES)
    for rivals in grouped(states, shared).values():
        places = grouped(rivals, axes)
        ours = next((place for place, group in places.items() if group[0].cell.at("rule") == study.reference), None)
        entries.update(_compare({place: entries[place] for place in places}, ours, study.scoring_runs))
    return entries


def _entry(group: Sequence[CellState], published: Published | None) -> Entry:
    return Entry(
        runs={state.cell.repeat: state.accuracy for state in group if state.accuracy is not None},
        expected=len(group),
        seconds_of={
            state.selection.evaluation_key: state.evaluation.seconds
            for state in group
            if state.selection is not None and state.evaluation is not None
        },
        published=None if published is None else published(dict(group[0].cell.place)),
        test=join_names(state.cell.input.test.name for state in group),
        whole=group[0].cell.whole,
    )


def _compare(entries: Mapping[K, Entry], ours: K | None, scoring_runs: int) -> dict[K, Entry]:
    """Mark the best entry, and ours if it is significantly better than every other.

    Means are over the repeats that all rules have; a rule without any run is left out.
    """
    known = {place: entry.runs for place, entry in entries.items() if entry.runs}
    shared = set.intersection(*map(set, known.values())) if known else set()
    if len(known) < 2 or not shared or all(entry.whole for entry in entries.values()):
        return dict(entries)
    rivals = {place: {repeat: runs[repeat] for repeat in sorted(shared)} for place, runs in known.items()}
    means = {place: mean(runs.values()) for place, runs in rivals.items()}
    best = max(means.values())
    compared = {place: replace(entry, best=means.get(place) == best) for place, entry in entries.items()}
    if ours is not None and ours in rivals:
        others = (runs for place, runs in rivals.items() if place != ours)
        ahead = all(is_ahead(rivals[ours], other, scoring_runs) for other in others)
        compared[ours] = replace(compared[ours], ahead=ahead)
    return compared


def _with_averages(rows: Iterable[Row], ours: int | None, scoring_runs: int) -> list[Row]:
    """After the rows of each set, their average over sizes and the difference of each rule to ours.

    Rows of all patches do not count: there is nothing to select.
    """
    sets: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        sets.setdefault(row.labels[:-1], []).append(row)
    result = []
    for labels, members in sets.items():
        result += members
        parts = [row.entries for row in members if not row.whole]
        if not parts:
            continue
        averages = [_average(entries) for entries in zip(*parts, strict=True)]
        if len(parts) > 1:
            compared = _compare(dict(enumerate(averages)), ours, scoring_runs)
            result.append(Row((*labels, AVERAGE), tuple(compared.values())))
        if ours is not None and len(averages) > 1:
            differences = (_difference(entry, averages[ours]) for entry in averages)
            result.append(Row((*labels, DIFFERENCE), tuple(differences)))
    return result


def _with_gains(rows: Iterable[Row], balanced: int) -> list[Row]:
    """Append to each row what balance gains; `balanced` is the column with it."""
    return [
        replace(row, entries=(*row.entries, _difference(row.entries[balanced], row.entries[1 - balanced])))
        for row in rows
    ]


def _with_means(
    study: Study,
    rows: Sequence[Row],
    groups: Mapping[tuple[str, ...], Sequence[CellState]],
    published: Published | None,
) -> list[Row]:
    """Append to each row its mean over all sizes, where all are measured; all patches count, since rows may be of other sets."""
    means = {row.labels: _average(row.entries) for row in rows}
    rivals: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for labels in means:
        rivals.setdefault(_without_rule(study, labels), []).append(labels)
    for places in rivals.values():
        ours = next((place for place in places if groups[place][0].cell.at("rule") == study.reference), None)
        means |= _compare({place: means[place] for place in places}, ours, study.scoring_runs)
    if published is not None:
        papers = {row: published({**dict(groups[row][0].cell.place), "size": AVERAGE}) for row in means}
        means = {row: replace(entry, published=papers[row] or entry.published) for row, entry in means.items()}
    return [replace(row, entries=(*row.entries, means[row.labels])) for row in rows]


def _without_rule(study: Study, labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(label for axis, label in zip(study.rows, labels, strict=True) if axis not in RULE_AXES)


def _average(entries: Sequence[Entry]) -> Entry:
    """Per repeat, over the repeats that all sizes have."""
    shared = set.intersection(*(set(entry.runs) for entry in entries))
    runs = {repeat: mean(entry.runs[repeat] for entry in entries) for repeat in sorted(shared)}
    paper = [entry.published.accuracy for entry in entries if entry.published is not None]
    return Entry(
        runs,
        expected=min(entry.expected for entry in entries),
        published=PublishedNumber(mean(paper)) if len(paper) == len(entries) else None,
        test=join_names(entry.test for entry in entries),
    )


def _difference(entry: Entry, ours: Entry) -> Entry:
    """Over the repeats that both have."""
    shared = [entry.runs[repeat] - ours.runs[repeat] for repeat in entry.runs if repeat in ours.runs]
    paper = None
    if entry.published is not None and ours.published is not None:
        paper = PublishedNumber(entry.published.accuracy - ours.published.accuracy)
    return Entry({}, expected=0, difference=mean(shared) if shared else nan, published=paper, test=entry.test)


def _note_on_marks(study: Study, rows: Iterable[Row]) -> Iterable[str]:
    if any(entry.ahead for row in rows for entry in row.entries):
        ours = study.label(study.reference)
        yield f"* {ours} is better than every other rule here: paired t-test over scoring runs, 95 %, one-sided."
