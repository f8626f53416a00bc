"""Draw the idea of the paper as a picture: `python tools/draw_idea.py docs/images/idea.png`.

Left: a set for every size is condensed by itself. Right: one set is condensed and ranked once, and every size is a prefix.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from condense_once import load, rank
from condense_once.condensed.contact_sheet import display_pixels
from condense_once.condensed.set import CondensedSet

CLASSES = 4  # that are shown
SIZES = {1: "#0072B2", 2: "#D55E00", 5: "#009E73"}  # images per class, and the colour of a set
GREY = "#666666"


def main(path: Path) -> None:
    data = rank(load("cifar10-idc-ipc10"))
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    before, after = figure.subplots(1, 2, width_ratios=(1, 1.25))
    _condense_again(before, data)
    _condense_once(after, data)
    for area in (before, after):
        area.set(aspect="equal")
        area.axis("off")
    figure.savefig(path, dpi=160, metadata={"Software": None} if path.suffix == ".png" else None)


def _condense_again(area: Axes, data: CondensedSet) -> None:
    area.set_title("One condensation for every size", loc="left")
    area.set(xlim=(-0.3, 12), ylim=(9.3, -0.6))
    _box(area, 0, 4, "real\nimages")
    for top, (size, colour) in zip((0.2, 3.2, 6.2), SIZES.items(), strict=True):
        _arrow(area, (2.1, 4.3), (6.2, top + 1.0), colour)
        area.text(4.2, (4.3 + top + 1.0) / 2 - 0.3, "hours", color=colour, fontsize=8, ha="right")
        _tiles(area, data, 6.4, top, 1, size, colour, classes=2)
        area.text(6.4 + size + 0.25, top + 1.0, f"{size} image{'s'[: size - 1]} per class", fontsize=8, va="center")


def _condense_once(area: Axes, data: CondensedSet) -> None:
    area.set_title("Condense once, rank, keep a prefix", loc="left")
    area.set(xlim=(-0.3, 15), ylim=(9.3, -0.6))
    _box(area, 0, 4, "real\nimages")
    _arrow(area, (2.1, 4.3), (4.1, 4.3), "black")
    area.text(3.1, 3.9, "hours", fontsize=8, ha="center")
    _tiles(area, data, 4.3, 2.3, 0, 10, "black", classes=CLASSES)
    for place, (size, colour) in enumerate(SIZES.items()):
        bottom = 6.75 + 0.75 * place
        area.plot([4.3, 4.3, 4.3 + size, 4.3 + size], [bottom - 0.2, bottom, bottom, bottom - 0.2], color=colour)
        name = f"{size} image{'s'[: size - 1]} per class, in milliseconds"
        area.text(4.5 + size, bottom, name, color=colour, fontsize=8, va="center")
    area.text(4.3, 1.9, "easiest first, classes balanced", fontsize=8, color=GREY)


def _tiles(
    area: Axes, data: CondensedSet, left: float, top: float, skip: int, count: int, colour: str, classes: int
) -> None:
    """The best patch of each of the first `count` images per class, one class per row, in a frame."""
    per_image = data.factor**2
    for row in range(classes):
        members = np.flatnonzero(data.labels == row)[skip * per_image :: per_image][:count]
        pixels, _ = display_pixels(data, members)
        for column, picture in enumerate(pixels):
            x, y = left + column, top + row
            area.imshow(picture.transpose(1, 2, 0), extent=(x, x + 0.94, y + 0.94, y), interpolation="nearest")
    width, height = count + 0.02, classes + 0.02
    area.add_patch(_frame(left - 0.04, top - 0.04, width, height, colour))


def _box(area: Axes, left: float, top: float, text: str) -> None:
    area.add_patch(_frame(left, top - 0.7, 2.0, 2.0, GREY))
    area.text(left + 1.0, top + 0.3, text, ha="center", va="center", fontsize=9)


def _frame(left: float, top: float, width: float, height: float, colour: str) -> Rectangle:
    return Rectangle((left, top), width, height, fill=False, edgecolor=colour, linewidth=1.6)


def _arrow(area: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    area.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
