"""Contact sheets: a condensed set at a glance, one class per row."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from condense_once.condensed.bundled import as_set
from condense_once.condensed.class_labels import class_labels, shortened
from condense_once.condensed.making import describe_ranking, describe_slimming
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import to_uint8
from condense_once.data.open import open_source
from condense_once.data.source import SplitName
from condense_once.data.zca import fit_zca
from condense_once.data.zca_store import find_zca, zca_by_name
from condense_once.errors import BadFile, UnknownName
from condense_once.text import plural

GAP = 2
SPACE = 24  # between classes side by side: a name belongs to the patches on its right
MAX_ROWS = 20  # classes below each other, whatever the shape of the sheet
ASPECT = 1.5  # width by height of a sheet with more
ZCA_SAMPLE = 1000  # images to fit ZCA on, unless a fit is kept: enough for true colours


def contact_sheet(
    data: CondensedSet | str | Path, *, columns: int = 20, tile: int = 64
) -> tuple[Image.Image, list[str]]:
    """An image of the first `columns` patches of each class, one class per row, and notes on what it shows.

    Many classes are arranged side by side.
    """
    data = as_set(data)
    counts = data.counts()
    shown = [np.flatnonzero(data.labels == label)[:columns] for label in range(len(data.classes))]
    rows = [label for label in range(len(data.classes)) if counts[label]]
    pixels, notes = display_pixels(data, np.concatenate([shown[label] for label in rows]))
    zoom = max(1, tile // max(data.size))
    step = (data.size[0] * zoom + GAP, data.size[1] * zoom + GAP)
    labels, remarks = class_labels({label: shortened(data.classes[label]) for label in rows})
    margin = 12 + int(max(font.getlength(text) for text, font in labels))
    width = margin + max(len(shown[label]) for label in rows) * step[1] + GAP
    beside = _side_by_side(len(rows), width + SPACE, step[0])
    high = -(-len(rows) // beside)
    sheet = Image.new("RGB", (-(-len(rows) // high) * (width + SPACE) - SPACE, high * step[0] + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    images = iter(pixels)
    for number, (label, (text, font)) in enumerate(zip(rows, labels, strict=True)):
        left, top = number // high * (width + SPACE), GAP + number % high * step[0]
        draw.text((left + 6, top + step[0] // 2), text, fill="black", font=font, anchor="lm")
        for place in range(len(shown[label])):
            picture = np.broadcast_to(next(images).transpose(1, 2, 0), (*data.size, 3))
            tile_image = Image.fromarray(np.ascontiguousarray(picture))
            tile_image = tile_image.resize((data.size[1] * zoom, data.size[0] * zoom), Image.Resampling.NEAREST)
            sheet.paste(tile_image, (left + margin + place * step[1], top))
    if any(counts[label] > columns for label in rows):
        most = plural(int(counts.max()), "patch")
        notes.append(f"Up to {columns} of {most} per class are shown; pass `columns` for more.")
    if (slimmed := describe_slimming(data.provenance)) is not None:
        notes.append(f"The set was slimmed {slimmed}.")
    if data.is_nested:
        notes.append(f"The set is {describe_ranking(data.ranking)}.")
    return sheet, [*notes, *remarks]


def _side_by_side(classes: int, width: int, height: int) -> int:
    """How many classes of this size, in pixels, to put beside each other.

    >>> _side_by_side(20, 173, 66), _side_by_side(100, 173, 66)
    (1, 8)
    """
    if classes <= MAX_ROWS:
        return 1
    return max(1, round(sqrt(ASPECT * classes * height / width)))


def display_pixels(data: CondensedSet, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], list[str]]:
    """8-bit pixels `[k, ch, h, w]` to look at, from any value space, and notes."""
    values = data.patches(rows)
    notes: list[str] = []
    if data.space.kind == "zca":
        values, notes = _undo_zca(data, values)
    else:
        values = data.space.to_pixels(values)
    return to_uint8(values), notes


def _undo_zca(data: CondensedSet, values: NDArray[np.float32]) -> tuple[NDArray[np.float32], list[str]]:
    """Pixels of whitened values, with ZCA fitted on its source or on the bundled sample of that."""
    source, space = data.space.zca["source"], data.space
    kept = zca_by_name(space.zca.get("fit"), data.shape, space.mean, space.std, space.zca)
    if kept is not None:
        return kept.undo(values), [f"ZCA was undone with the kept fit on {source}."]
    candidates: tuple[tuple[str, SplitName], ...] = ((source, "train"), (f"{source}-sample", "test"))
    for name, split in candidates:
        try:
            images = open_source(name).split(split)
        except (BadFile, UnknownName):
            continue
        fitted = len(images.labels)
        zca = find_zca(images, space.mean, space.std, space.zca)
        if zca is None:
            zca = fit_zca(images, space.mean, space.std, space.zca, max_images=ZCA_SAMPLE)
            fitted = min(fitted, ZCA_SAMPLE)
        return zca.undo(values), [f"ZCA was undone with a fit on {plural(fitted, 'image')} of {name}."]
    grey = values / (2 * np.quantile(np.abs(values), 0.99)) + 0.5
    return grey, [f"The set is ZCA-whitened; download its source {source} to see true colours."]
