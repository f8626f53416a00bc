"""Accuracy over the size, or over the epoch of the scores: the paper's figures 3 and 5, and curves of several sets."""

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
from condense_once.selection.selectors.auto_preference import turning_point
from condense_once.studies.figures.drawing import (
    DRAWINGS,
    Drawing,
    FigureData,
    accuracies,
    mean_and_std,
    single_epoch,
)
from condense_once.studies.figures.style import COLOURS, GREY, colour, dash, panels, title, whole_ticks
from condense_once.studies.grid import Cell
from condense_once.studies.state import CellState, grouped
from condense_once.studies.study import Axis, Study

if TYPE_CHECKING:  # an extra
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scale = Literal["fraction", "ipc", "epoch"]
LABELS: Mapping[Scale, str] = {
    "fraction": "fraction of the patches kept, %",
    "ipc": "images per class",
    "epoch": "epoch of the scoring run, from 0",
}
PAPER_CROSSINGS = "The paper's turning points are those of its figure 3, interpolated by images per class."
MARKERS = "os^Dv<>"
MAX_MARKED = 30  # points of a line with markers; more would hide it


@dataclass(frozen=True)
class Line:
    """Accuracies in percent at ascending places."""

    places: NDArray[np.float64]
    means: NDArray[np.float64]
    stds: NDArray[np.float64]
    levels: Mapping[str, float]  # means without a place of their own, such as those of several epochs
    rule: Rule


def draw_lines(figure: Figure, results: FigureData) -> str:
    """The last axis of the rows is a line, the others are panels."""
    *outer, last = results.study.rows
    return _draw_panels(figure, results, ("set", *(axis for axis in outer if axis != "set")), (last,))


def draw_curves(figure: Figure, results: FigureData) -> str:
    """Every row is a line, all in one panel."""
    return _draw_panels(figure, results, (), results.study.rows)


def _draw_panels(figure: Figure, results: FigureData, inside: Sequence[Axis], each: Sequence[Axis]) -> str:
    """A panel for each place on the axes `inside`, with a line for each place on the axes `each`."""
    study, scale = results.study, _scale(results.study)
    numbers = {name: number for number, name in enumerate(grouped(results.states, each))}
    chosen = grouped([state for state in results.states if state.done], inside)
    if not chosen:
        raise results.nothing_yet()
    areas = panels(figure, len(chosen), across=2, height=3.4 if inside else 4.4)
    caption = "Bands: ± one standard deviation."
    for area, (place, group) in zip(areas, chosen.items(), strict=True):
        lines = {name: line_of(members, scale) for name, members in grouped(group, each).items()}
        drawn = [
            entry
            for name, line in lines.items()
            for entry in _draw_line(area, line, numbers[name], title(study, each, name))
        ]
        heading = [title(study, inside, place)]
        first, *others = lines.values()
        if scale == "fraction" and len(others) == 1 and _opposite(first.rule, others[0].rule):
            second = others[0]
            drawn += _draw_difference(area, first, second)
            turns = crossings(*_shared(first, second))
            expected = expected_turn(group[0].cell.input.data, first.rule, second.rule) if results.with_paper else None
            heading.append(_draw_turns(area, turns, expected))
            caption += "" if expected is None or PAPER_CROSSINGS in caption else f" {PAPER_CROSSINGS}"
        area.set_title("\n".join(filter(None, heading)), loc="left")
        area.set_xlabel(LABELS[scale])
        area.set_ylabel("test accuracy, %")
        if scale != "fraction":
            whole_ticks(area)
        area.legend(*zip(*drawn, strict=True), loc="best")
    return f"{caption} {results.how_measured()}"


def line_of(states: Sequence[CellState], scale: Scale) -> Line:
    """The line of some cells that are done, over sizes or epochs."""
    found: dict[float, list[CellState]] = {}
    elsewhere: dict[str, list[CellState]] = {}
    for state in states:
        place = _place(state.cell, scale)
        if place is None:
            elsewhere.setdefault(state.cell.at("epochs"), []).append(state)
        else:
            found.setdefault(place, []).append(state)
    places = np.array(sorted(found))
    means, stds = np.array([mean_and_std(accuracies(found[place])) for place in places]).reshape(-1, 2).T
    levels = {epochs: mean_and_std(accuracies(members))[0] for epochs, members in elsewhere.items()}
    return Line(places, means, stds, levels, states[0].cell.rule)


def crossings(places: ArrayLike, first: ArrayLike, second: ArrayLike) -> list[float]:
    """Where two piecewise linear curves cross.

    Touching is not crossing, nor is a shared start or end. Where they coincide for a while, it is the middle of that.

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
    """The paper's turning point for an easy and a hard rule, as the percentage of patches kept."""
    if not _opposite(first, second):
        return None
    return 100 * (1 - turning_point(images_per_class(data, len(data))))


def _opposite(first: Rule, second: Rule) -> bool:
    """Whether one rule keeps the easy patches and the other the hard ones, so that the better one may change."""
    return {first.prefer, second.prefer} == {"easy", "hard"}


def _scale(study: Study) -> Scale:
    if study.columns == ("epochs",):
        return "epoch"
    if study.columns == ("size",):
        return "ipc" if all(Budget.parse(size).ipc for size in study.sizes) else "fraction"
    raise BadOption(
        f"Lines are drawn over size or epochs, so one of these must be `columns` of {study.name}, not"
        f" {' and '.join(study.columns)}."
    )


def _place(cell: Cell, scale: Scale) -> float | None:
    if scale == "epoch":
        return single_epoch(cell.config.lbpe_epochs)
    if scale == "ipc":
        return Budget.parse(cell.at("size")).ipc
    return 100 * cell.patches / len(cell.input.data)


def _shared(first: Line, second: Line) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The places of both lines, and their means there."""
    places, left, right = np.intersect1d(first.places, second.places, return_indices=True)
    return places, first.means[left], second.means[right]


def _draw_line(area: Axes, line: Line, number: int, name: str) -> list[tuple[Artist, str]]:
    """A line with its band and its horizontal levels; returns them with their names."""
    drawn: list[tuple[Artist, str]] = []
    if len(line.places):
        marker = MARKERS[number % len(MARKERS)] if len(line.places) <= MAX_MARKED else ""
        style: dict[str, Any] = {"color": colour(number), "linestyle": dash(number), "marker": marker, "markersize": 4}
        drawn.append((area.plot(line.places, line.means, **style)[0], name))
        low, high = line.means - line.stds, line.means + line.stds
        area.fill_between(line.places, low, high, color=colour(number), alpha=0.18, linewidth=0)
    for epochs, mean in line.levels.items():
        level = area.axhline(mean, color=colour(number), linestyle=(0, (6, 3)), linewidth=1)
        drawn.append((level, f"{name}, epochs {epochs}"))
    return drawn


def _draw_difference(area: Axes, first: Line, second: Line) -> list[tuple[Artist, str]]:
    """How far the easy rule is ahead of the hard one, in points; shaded where it is ahead, and where it is behind."""
    easy, hard = (first, second) if first.rule.prefer == "easy" else (second, first)
    places, left, right = _shared(easy, hard)
    if not len(places):
        return []
    ahead = left - right
    area.axhline(0, color=GREY, linewidth=0.8)
    area.fill_between(
        places, 0, ahead, where=(ahead > 0).tolist(), interpolate=True, color=GREY, alpha=0.15, linewidth=0
    )
    shade: dict[str, Any] = {"color": COLOURS[5], "alpha": 0.25, "linewidth": 0}
    area.fill_between(places, 0, ahead, where=(ahead < 0).tolist(), interpolate=True, **shade)
    return [(area.plot(places, ahead, color=GREY, marker="x", markersize=4)[0], "easy − hard, points")]


def _draw_turns(area: Axes, turns: Sequence[float], expected: float | None) -> str:
    """Mark where the better rule changes; returns a sentence on it."""
    for place in turns:
        area.axvline(place, color=GREY, linewidth=1)
    written = " and ".join(f"{place:.0f} %" for place in turns)
    found = f"turning point at {written}" if turns else "no turning point"
    if expected is None:
        return found
    area.axvline(expected, color=GREY, linewidth=1, linestyle=":")
    return f"{found}, in the paper at {expected:.0f} % (dotted)"


LINES = DRAWINGS.add(Drawing("lines", "accuracy over sizes or epochs, one line per rule", draw_lines, _scale))
CURVES = DRAWINGS.add(Drawing("curves", "the same, all sets and rules in one panel", draw_curves, _scale))
