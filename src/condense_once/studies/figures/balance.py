"""Patches kept per class, for each rule: the paper's figure 2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.studies.figures.drawing import DRAWINGS, Drawing, FigureData, accuracies, mean_and_std
from condense_once.studies.figures.style import colour, panels, title
from condense_once.studies.state import grouped
from condense_once.studies.study import Axis

if TYPE_CHECKING:  # an extra
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAMED = 20  # classes with names on the axis; more are numbered
FILLED = 0.8  # of the width of a class
PAPER_GAIN = (
    "In the paper balance gains most on ImageNet-10 (10 → 1): 19.37 points, where three classes had lost all patches."
)
HEADROOM = 0.13  # per line of the legend, relative to the tallest bar


def draw_balance(figure: Figure, results: FigureData) -> str:
    study = results.study
    inside: tuple[Axis, ...] = ("set", *(axis for axis in study.rows if axis != "set"))
    beside: tuple[Axis, ...] = tuple(axis for axis in study.columns if axis != "set")
    numbers = {place: number for number, place in enumerate(grouped(results.states, beside))}
    chosen = grouped([state for state in results.states if state.selection is not None], inside)
    if not chosen:
        raise results.nothing_yet()
    named = all(len(group[0].cell.input.data.classes) <= MAX_NAMED for group in chosen.values())
    areas = panels(figure, len(chosen), across=2 if named else 1, height=3.0)
    for area, (place, group) in zip(areas, chosen.items(), strict=True):
        data = group[0].cell.input.data
        highest, handles, names = 0.0, [], []
        for rule, members in grouped(group, beside).items():
            rows = [state.selection.rows for state in members if state.selection is not None]
            counts = mean_counts(rows, data.labels, len(data.classes))
            highest = max(highest, float(counts.max()))
            handles.append(_draw_bars(area, counts, numbers[rule], len(numbers)))
            names.append(f"{', '.join(map(study.label, rule))}{_accuracy(accuracies(members))}")
        area.set_ylim(0, highest * (1.05 + HEADROOM * len(names)))
        area.legend(handles, names, loc="upper left", borderaxespad=0.2)
        area.set_title(title(study, inside, place), loc="left")
        area.set_ylabel("patches kept")
        area.locator_params(axis="y", integer=True)
        _name_classes(area, data, results)
    paper = f"{PAPER_GAIN} " if results.with_paper else ""
    return f"Counts are means over the repeats; × marks a class without any patch. {paper}{results.how_measured()}"


def mean_counts(
    selections: Iterable[NDArray[np.int64]], labels: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """Mean number of patches kept per class, `[C]`.

    >>> mean_counts([np.array([0, 1]), np.array([0, 2])], np.array([0, 0, 1]), 3).tolist()
    [1.5, 0.5, 0.0]
    """
    counts: NDArray[np.float64] = np.mean([np.bincount(labels[rows], minlength=classes) for rows in selections], axis=0)
    return counts


def _draw_bars(area: Axes, counts: NDArray[np.float64], number: int, rules: int) -> Artist:
    """The bars of rule `number` of `rules`."""
    width = FILLED / rules
    left = np.arange(len(counts)) - FILLED / 2 + number * width
    # One outline with gaps is as fast for a thousand classes as for ten.
    edges = np.stack([left, left + width], axis=1).ravel()
    heights = np.stack([counts, np.full(len(counts), np.nan)], axis=1).ravel()[:-1]
    bars = area.stairs(heights, edges, fill=True, color=colour(number))
    empty = left[counts == 0] + width / 2
    bottom = np.full(len(empty), 0.03)
    marks: dict[str, Any] = {"marker": "x", "markersize": 5, "linestyle": "none", "color": colour(number)}
    area.plot(empty, bottom, transform=area.get_xaxis_transform(), **marks)
    return bars


def _name_classes(area: Axes, data: CondensedSet, results: FigureData) -> None:
    area.set_xlim(-0.6, len(data.classes) - 0.4)
    if len(data.classes) <= MAX_NAMED:
        names = [results.class_name(data, label) for label in range(len(data.classes))]
        area.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    else:
        area.set_xlabel("class index")


def _accuracy(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean, std = mean_and_std(values)
    return f", accuracy {mean:.1f} %" if len(values) == 1 else f", accuracy {mean:.1f} ± {std:.1f} %"


BALANCE = DRAWINGS.add(Drawing("balance", "patches kept per class, for each rule", draw_balance))
