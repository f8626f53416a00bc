"""The style of figures: colours for all kinds of colour vision, panels, names that fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from condense_once.condensed.budget import Budget
from condense_once.studies.study import Axis, Study

if TYPE_CHECKING:  # an extra
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

WIDTH = 8.0  # inches; at 100 dpi, text is as large as on a web page

# Okabe and Ito's palette, without yellow, which is invisible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":")  # for more lines than colours
GREY = "#666666"

RC: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,  # hides the grid behind its text
    "legend.fontsize": 8.5,
    "text.parse_math": False,  # class names may contain dollar signs
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "condense-once",  # the same ids in every file
}


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def dash(number: int) -> str:
    return DASHES[number // len(COLOURS) % len(DASHES)]


def panels(figure: Figure, count: int, *, across: int, height: float) -> list[Axes]:
    """`count` panels in rows of `across`, each `height` inches high."""
    across = min(across, count)
    rows = -(-count // across)
    figure.set_size_inches(WIDTH, 0.8 + rows * height)
    return [figure.add_subplot(rows, across, number + 1) for number in range(count)]


def stacked(figure: Figure, heights: Sequence[float]) -> list[SubFigure]:
    """Subfigures from top to bottom, with heights in inches."""
    figure.set_size_inches(WIDTH, 0.8 + sum(heights))
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)
    return list(parts[:, 0])


def whole_ticks(area: Axes) -> None:
    """Ticks at whole numbers, for an axis of counts."""
    area.locator_params(axis="x", integer=True)


def title(study: Study, axes: Sequence[Axis], place: Sequence[str]) -> str:
    """The title of a position in the grid.

    >>> title(Study("mine", "of mine"), ("set", "size"), ("small", "5"))
    'small, 5 images per class'
    """
    return ", ".join(_label(study, axis, value) for axis, value in zip(axes, place, strict=True))


def _label(study: Study, axis: Axis, value: str) -> str:
    label = study.label(value)
    if axis != "size" or label != value:
        return label
    size = Budget.parse(value)
    return f"{value} kept" if size.ipc is None else f"{value} image{'' if size.ipc == 1 else 's'} per class"
