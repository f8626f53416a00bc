"""Accuracy over how much is kept, or over the epoch that patches are scored in: the paper's figures 3 and 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.selection.rule import Rule
from condense_once.selection.selectors import images_per_class
from condense_once.selection.selectors.easy_or_hard import turning_point
from condense_once.studies.figures.drawing import (
    DRAWINGS,
    Drawing,
    Material,
    accuracies,
    mean_and_spread,
    single_epoch,
)
from condense_once.studies.figures.style import GREY, colour, dash, panels, title
from condense_once.studies.grid import Cell
from condense_once.studies.run import State, grouped
from condense_once.studies.study import Axis, Study

if TYPE_CHECKING:  # an extra
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scale = Literal["share", "ipc", "epoch"]
LABELS: Mapping[Scale, str] = {
    "share": "share of the patches that is kept, %",
    "ipc": "images per class that are kept",
    "epoch": "epoch of the scoring run, counted from 0",
}
PAPERS_TURNS = "The paper's turning points are those of its figure 3 or in between, by images per class."
MARKERS = "os^Dv<>"
MARKED = 30  # points of a line that are marked; more would hide it


@dataclass(frozen=True)
class Line:
    """Accuracies in percent at places that ascend."""

    places: NDArray[np.float64]
    means: NDArray[np.float64]
    spreads: NDArray[np.float64]
    levels: Mapping[str, float]  # of what has no place of its own, such as several epochs
    rule: Rule


def draw_lines(figure: Figure, material: Material) -> str:
    study, scale = material.study, _scale(material.study)
    inside: tuple[Axis, ...] = ("set", *(axis for axis in study.rows[:-1] if axis != "set"))
    each = study.rows[-1:]
    numbers = {name: number for number, name in enumerate(grouped(material.states, each))}
    chosen = grouped([state for state in material.states if state.done], inside)
    if not chosen:
        raise material.nothing_yet()
    areas = panels(figure, len(chosen), across=2, height=3.4)
    caption = "Bands are the sample deviation to both sides."
    for area, (place, group) in zip(areas, chosen.items(), strict=True):
        lines = {name: line_of(members, scale) for name, members in grouped(group, each).items()}
        drawn = [
            entry
            for name, line in lines.items()
            for entry in _draw_line(area, line, numbers[name], title(study, each, name))
        ]
        heading = [title(study, inside, place)]
        if scale == "share" and len(lines) == 2:
            first, second = lines.values()
            turns = crossings(*_shared(first, second))
            expected = (
                expected_turn(group[0].cell.subject.data, first.rule, second.rule) if material.with_paper else None
            )
            heading.append(_draw_turns(area, turns, expected))
            caption += "" if expected is None or PAPERS_TURNS in caption else f" {PAPERS_TURNS}"
        area.set_title("\n".join(heading), loc="left")
        area.set_xlabel(LABELS[scale])
        area.set_ylabel("test accuracy, %")
        area.legend(*zip(*drawn, strict=True), loc="best")
    return f"{caption} {material.so_far()}"


def line_of(states: Sequence[State], scale: Scale) -> Line:
    """The line of some cells that are done, over sizes or epochs."""
    found: dict[float, list[State]] = {}
    elsewhere: dict[str, list[State]] = {}
    for state in states:
        place = _place(state.cell, scale)
        if place is None:
            elsewhere.setdefault(state.cell.at("epochs"), []).append(state)
        else:
            found.setdefault(place, []).append(state)
    places = np.array(sorted(found))
    means, spreads = np.array([mean_and_spread(accuracies(found[place])) for place in places]).reshape(-1, 2).T
    levels = {epochs: mean_and_spread(accuracies(members))[0] for epochs, members in elsewhere.items()}
    return Line(places, means, spreads, levels, states[0].cell.rule)


def crossings(places: ArrayLike, first: ArrayLike, second: ArrayLike) -> list[float]:
    """Where two lines of straight pieces change sides.

    Lines that only touch do not, nor do those that begin or end together. Where they run together in between, it is the middle.

    >>> crossings([10, 20, 30], [1.0, 1.0, 1.0], [0.0, 0.5, 2.5])
    [22.5]
    """
    where, ahead = np.asarray(places), np.asarray(first) - np.asarray(second)
    apart = np.flatnonzero(ahead)
    found = []
    for left, right in pairwise(apart):
        if (ahead[left] > 0) == (ahead[right] > 0):
            continue
        if right > left + 1:
            found.append(float(where[left + 1] + where[right - 1]) / 2)
        else:
            way = ahead[left] / (ahead[left] - ahead[right])
            found.append(float(where[left] + way * (where[right] - where[left])))
    return found


def expected_turn(data: CondensedSet, first: Rule, second: Rule) -> float | None:
    """The share in percent that is kept where the paper has easy and hard patches as good, if two rules prefer one each."""
    if {first.prefer, second.prefer} != {"easy", "hard"}:
        return None
    return 100 * (1 - turning_point(images_per_class(data, len(data))))


def _scale(study: Study) -> Scale:
    if study.columns == ("epochs",):
        return "epoch"
    if study.columns == ("size",):
        return "ipc" if all(Budget.parse(size).ipc for size in study.sizes) else "share"
    raise BadOption(
        f"Lines are drawn over size or epochs, so one of them must be the columns of {study.name},"
        f" not {' and '.join(study.columns)}."
    )


def _place(cell: Cell, scale: Scale) -> float | None:
    if scale == "epoch":
        return single_epoch(cell.settings.lbpe_epochs)
    if scale == "ipc":
        return Budget.parse(cell.at("size")).ipc
    return 100 * cell.patches / len(cell.subject.data)


def _shared(first: Line, second: Line) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The places that two lines both have, and their means there."""
    places, left, right = np.intersect1d(first.places, second.places, return_indices=True)
    return places, first.means[left], second.means[right]


def _draw_line(area: Axes, line: Line, number: int, name: str) -> list[tuple[Artist, str]]:
    """A line with its band, and levels across; returns what was drawn and its name."""
    drawn: list[tuple[Artist, str]] = []
    if len(line.places):
        marker = MARKERS[number % len(MARKERS)] if len(line.places) <= MARKED else ""
        look: dict[str, Any] = {"color": colour(number), "linestyle": dash(number), "marker": marker, "markersize": 4}
        drawn.append((area.plot(line.places, line.means, **look)[0], name))
        low, high = line.means - line.spreads, line.means + line.spreads
        area.fill_between(line.places, low, high, color=colour(number), alpha=0.18, linewidth=0)
    for epochs, mean in line.levels.items():
        level = area.axhline(mean, color=colour(number), linestyle=(0, (6, 3)), linewidth=1)
        drawn.append((level, f"{name}, epochs {epochs}"))
    return drawn


def _draw_turns(area: Axes, turns: Sequence[float], expected: float | None) -> str:
    """Mark where the better rule changes, and say where that is."""
    for place in turns:
        area.axvline(place, color=GREY, linewidth=1)
    written = " and ".join(f"{place:.0f} %" for place in turns)
    found = f"turning point at {written}" if turns else "no turning point"
    if expected is None:
        return found
    area.axvline(expected, color=GREY, linewidth=1, linestyle=":")
    return f"{found}, by the paper at {expected:.0f} % (dotted)"


LINES = DRAWINGS.add(Drawing("lines", "accuracy over sizes or epochs, a line a rule", draw_lines, _scale))
