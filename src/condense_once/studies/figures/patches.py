"""The easiest and the hardest patches of each class: the paper's figure 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.contact_sheet import display_pixels
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.originals import original_rows
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, ScoringRun
from condense_once.selection.order import order_rows
from condense_once.studies.figures.drawing import DRAWINGS, Drawing, FigureData
from condense_once.studies.figures.style import stacked
from condense_once.studies.grid import Cell

if TYPE_CHECKING:  # an extra
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 6  # patches at either end
MAX_CLASSES = 20
TILE, TITLE = 0.52, 0.6  # inches: a patch, and the text above and below all of them
GAP = 0.6  # between the two ends, in patches
FILLED = 0.94  # of the space of a patch


def draw_patches(figure: Figure, results: FigureData) -> str:
    found: dict[str, tuple[Cell, NDArray[np.int64]]] = {}
    for cell in results.scoring_cells:
        if cell.at("set") not in found and (scoring_run := results.scoring_run(cell)) is not None:
            found[cell.at("set")] = (cell, easiest_first(cell, scoring_run))
    if not found:
        raise results.nothing_yet()
    classes = {name: np.unique(cell.input.data.labels) for name, (cell, _) in found.items()}
    originals = {name: _originals(cell) for name, (cell, _) in found.items()}
    heights = [
        TITLE + TILE * min(len(labels), MAX_CLASSES) * (1 if originals[name] is None else 2)
        for name, labels in classes.items()
    ]
    notes = []
    for part, (name, (cell, order)) in zip(stacked(figure, heights), found.items(), strict=True):
        part.suptitle(results.study.label(name), fontsize="medium", x=0.01, ha="left")
        drawn = classes[name][:MAX_CLASSES]
        names = [results.class_name(cell.input.data, int(label)) for label in drawn]
        named = dict(zip(drawn, names, strict=True))
        notes += _draw_set(part.add_subplot(), cell.input.data, order, named, originals[name])
        if len(classes[name]) > MAX_CLASSES:
            notes.append(f"The first {MAX_CLASSES} of {len(classes[name])} classes are shown.")
    counts = " and ".join(str(len(order)) for _, order in found.values())
    metric = METRICS.get(next(iter(found.values()))[0].rule.metric).name
    return " ".join([f"Easy and hard by {metric}; n = {counts} patches. {results.how_scored()}", *notes])


def easiest_first(cell: Cell, scoring_run: ScoringRun) -> NDArray[np.int64]:
    """All patches by the metric of a cell's rule, easiest first whatever the rule prefers."""
    metric = METRICS.get(cell.rule.metric)
    scores = metric.score(scoring_run, cell.config)
    return order_rows(scores, scoring_run.labels, easy=metric.easy, prefer="easy", balanced=False)


def ends(order: NDArray[np.int64], shown: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last rows of an order, without overlap.

    >>> [rows.tolist() for rows in ends(np.arange(9), 2)], [rows.tolist() for rows in ends(np.arange(3), 2)]
    ([[0, 1], [7, 8]], [[0, 1], [2]])
    """
    middle = -(-len(order) // 2)
    return order[:middle][:shown], order[middle:][-shown:]


def _draw_set(
    area: Axes,
    data: CondensedSet,
    order: NDArray[np.int64],
    classes: Mapping[int, str],
    originals: Callable[[NDArray[np.int64]], NDArray[np.uint8]] | None,
) -> list[str]:
    """A line of patches per class, given with its name, with the originals below if there are any; returns notes."""
    shown = min(SHOWN, -(-int(data.counts().max()) // 2))
    width, lines = 2 * shown + GAP, 1 if originals is None else 2
    places: dict[int, tuple[float, int]] = {}  # of patches: left edge and line
    for row, label in enumerate(classes):
        easy, hard = ends(order[data.labels[order] == label], shown)
        places.update({int(patch): (place, lines * row) for place, patch in enumerate(easy)})
        places.update({int(patch): (width - len(hard) + place, lines * row) for place, patch in enumerate(hard)})
    patches = np.array(list(places))
    colours, notes = display_pixels(data, patches)
    for number, pictures in enumerate([colours] if originals is None else [colours, originals(patches)]):
        for picture, (left, line) in zip(pictures, places.values(), strict=True):
            top = line + number
            pixels = np.broadcast_to(picture.transpose(1, 2, 0), (*data.size, 3))
            area.imshow(pixels, extent=(left, left + FILLED, top + FILLED, top), interpolation="nearest")
    area.set(xlim=(0, width), ylim=(lines * len(classes), 0), aspect=data.size[0] / data.size[1])
    area.set_xticks([shown / 2, width - shown / 2], ["easiest first", "hardest last"])
    area.set_yticks(lines * np.arange(len(classes)) + FILLED / 2, list(classes.values()))
    area.tick_params(length=0)
    area.grid(visible=False)
    area.spines[:].set_visible(False)
    return notes if originals is None else [*notes, "Below each patch: the real image that it started from."]


def _originals(cell: Cell) -> Callable[[NDArray[np.int64]], NDArray[np.uint8]] | None:
    """A function from patches to the real images that they started from, if the set records and the source has them."""
    data, source = cell.input.data, cell.input.test
    if "train" not in source.splits:
        return None
    try:
        rows = original_rows(data, source)
    except BadOption:
        return None
    return lambda patches: source.train.take(rows[patches])


PATCHES = DRAWINGS.add(Drawing("patches", "the easiest and the hardest patches of each class", draw_patches))
