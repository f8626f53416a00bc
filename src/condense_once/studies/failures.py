"""What failed of a study or is damaged in its store, where and why, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from condense_once.studies.state import CellState, StudyState, grouped
from condense_once.studies.study import Axis

MAX_PLACES = 5  # that a sentence names
_OPTIONAL_AXES: tuple[Axis, ...] = ("set", "net", "epochs")  # named only where a study has several values


STORED = {"selections": "selection", "evaluations": "result", "evidence": "scoring run or slimmed set"}  # by table


def describe_failures(state: StudyState) -> Iterator[str]:
    """One sentence per reason."""
    reasons: dict[str, list[CellState]] = {}
    for failure in state.failures:
        reasons.setdefault(str(failure.error), []).append(failure)
    for reason, failures in reasons.items():
        what = "run" if state.cells else "scoring run"
        count = f"1 {what}" if len(failures) == 1 else f"{len(failures)} {what}s"
        yield f"{count} failed ({_places(state, failures)}): {reason}"


def describe_damage(state: StudyState) -> Iterator[str]:
    """One sentence per kind of row that is damaged in the store, and where it is used."""
    for table, what in STORED.items():
        users = [each for each in (*state.cells, *state.scoring) if table in each.damaged]
        if users:
            yield f"A {what} in the store is damaged and counts as missing ({_places(state, users)})."


def _places(state: StudyState, some: Sequence[CellState]) -> str:
    """Where in the grid some cells are."""
    axes: list[Axis] = ["rule", "size"] if state.cells else ["set"]
    axes += [axis for axis in _OPTIONAL_AXES if len(grouped(state.cells, (axis,))) > 1]
    places = [_place(axes, place, group) for place, group in grouped(some, axes).items()]
    more = [f"and {len(places) - MAX_PLACES} more"] if len(places) > MAX_PLACES else []
    return "; ".join([*places[:MAX_PLACES], *more])


def _place(axes: Sequence[Axis], place: Sequence[str], states: Sequence[CellState]) -> str:
    """A position in the grid, such as `el2n at 1, repeats 0–2`."""
    at = dict(zip(axes, place, strict=True))
    if "rule" not in at:
        return at["set"]
    named = f"{at.pop('rule')} at {at.pop('size')}"
    repeats = _ranges(sorted(state.cell.repeat for state in states))
    return ", ".join([named, *at.values(), f"repeat{'s' if len(states) > 1 else ''} {repeats}"])


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, with runs abbreviated.

    >>> _ranges([0, 1, 2, 5])
    '0–2, 5'
    """
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
