"""Contact sheets: a condensed set at a glance, one class per row."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import to_uint8
from condense_once.data.open import open_source
from condense_once.data.source import SplitName
from condense_once.data.zca import fit_zca
from condense_once.errors import BadFile, UnknownName

GAP = 2
ZCA_SAMPLE = 1000  # images to fit ZCA on: enough for true colours


def contact_sheet(
    data: CondensedSet | str | Path, *, columns: int = 20, tile: int = 64
) -> tuple[Image.Image, list[str]]:
    """An image of the first `columns` patches of each class, one class per row, and notes on what it shows."""
    data = as_set(data)
    counts = data.counts()
    shown = [np.flatnonzero(data.labels == label)[:columns] for label in range(len(data.classes))]
    rows = [label for label in range(len(data.classes)) if counts[label]]
    pixels, notes = display_pixels(data, np.concatenate([shown[label] for label in rows]))
    zoom = max(1, tile // max(data.size))
    step = (data.size[0] * zoom + GAP, data.size[1] * zoom + GAP)
    font = ImageFont.load_default(size=14)
    names = {label: textwrap.shorten(data.classes[label], 24, placeholder="…") for label in rows}
    margin = 12 + int(max(font.getlength(name) for name in names.values()))
    width = margin + max(len(shown[label]) for label in rows) * step[1] + GAP
    sheet = Image.new("RGB", (width, len(rows) * step[0] + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    images = iter(pixels)
    for line, label in enumerate(rows):
        top = GAP + line * step[0]
        draw.text((6, top + step[0] // 2), names[label], fill="black", font=font, anchor="lm")
        for place in range(len(shown[label])):
            picture = np.broadcast_to(next(images).transpose(1, 2, 0), (*data.size, 3))
            tile_image = Image.fromarray(np.ascontiguousarray(picture))
            tile_image = tile_image.resize((data.size[1] * zoom, data.size[0] * zoom), Image.Resampling.NEAREST)
            sheet.paste(tile_image, (margin + place * step[1], top))
    if any(counts[label] > columns for label in rows):
        notes.append(f"Up to {columns} of {counts.max()} patches per class are shown; pass `columns` for more.")
    return sheet, notes


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
    source = data.space.zca["source"]
    candidates: tuple[tuple[str, SplitName], ...] = ((source, "train"), (f"{source}-sample", "test"))
    for name, split in candidates:
        try:
            images = open_source(name).split(split)
        except (BadFile, UnknownName):
            continue
        zca = fit_zca(images, data.space.mean, data.space.std, data.space.zca, max_images=ZCA_SAMPLE)
        return zca.undo(values), [
            f"ZCA was undone with a fit on {min(len(images.labels), ZCA_SAMPLE)} images of {name}."
        ]
    grey = values / (2 * np.quantile(np.abs(values), 0.99)) + 0.5
    return grey, [f"The set is ZCA-whitened; download its source {source} to see true colours."]
