"""The contact sheet: a condensed set at a glance, one class a row."""

from __future__ import annotations

import textwrap

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import to_bytes
from condense_once.data.open import open_source
from condense_once.data.source import SplitName
from condense_once.data.zca import fit_whitening
from condense_once.errors import BadFile, UnknownName

GAP = 2
WHITENING_SAMPLE = 1000  # images that a whitening is estimated from: enough for the colours of a picture


def contact_sheet(data: CondensedSet, *, columns: int = 20, tile: int = 64) -> tuple[Image.Image, list[str]]:
    """One class a row with its name, the first `columns` patches of each; and notes on how true the colours are."""
    counts = data.counts()
    shown = [np.flatnonzero(data.labels == label)[:columns] for label in range(len(data.classes))]
    rows = [label for label in range(len(data.classes)) if counts[label]]
    colours, notes = colours_of(data, np.concatenate([shown[label] for label in rows]))
    zoom = max(1, tile // max(data.size))
    step = (data.size[0] * zoom + GAP, data.size[1] * zoom + GAP)
    font = ImageFont.load_default(size=14)
    names = {label: textwrap.shorten(data.classes[label], 24, placeholder="…") for label in rows}
    margin = 12 + int(max(font.getlength(name) for name in names.values()))
    width = margin + max(len(shown[label]) for label in rows) * step[1] + GAP
    sheet = Image.new("RGB", (width, len(rows) * step[0] + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    pictures = iter(colours)
    for line, label in enumerate(rows):
        top = GAP + line * step[0]
        draw.text((6, top + step[0] // 2), names[label], fill="black", font=font, anchor="lm")
        for place in range(len(shown[label])):
            picture = np.broadcast_to(next(pictures).transpose(1, 2, 0), (*data.size, 3))
            tile_image = Image.fromarray(np.ascontiguousarray(picture))
            tile_image = tile_image.resize((data.size[1] * zoom, data.size[0] * zoom), Image.Resampling.NEAREST)
            sheet.paste(tile_image, (margin + place * step[1], top))
    if any(counts[label] > columns for label in rows):
        notes.append(f"Up to {columns} of {counts.max()} patches per class are shown; pass --columns for more.")
    return sheet, notes


def colours_of(data: CondensedSet, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], list[str]]:
    """8-bit colours `[k, ch, h, w]`, whatever space the set lives in."""
    values = data.patches(rows)
    notes: list[str] = []
    if data.space.kind == "zca":
        values, notes = _without_whitening(data, values)
    else:
        values = data.space.to_pixels(values)
    return to_bytes(values), notes


def _without_whitening(data: CondensedSet, values: NDArray[np.float32]) -> tuple[NDArray[np.float32], list[str]]:
    """Pixels from whitened values, by the source that the whitening was fitted on or else its bundled sample."""
    source = data.space.zca["source"]
    candidates: tuple[tuple[str, SplitName], ...] = ((source, "train"), (f"{source}-sample", "test"))
    for name, split in candidates:
        try:
            images = open_source(name).split(split)
        except (BadFile, UnknownName):
            continue
        whitening = fit_whitening(images, data.space.mean, data.space.std, data.space.zca, most=WHITENING_SAMPLE)
        return whitening.undo(values), [
            f"The whitening was undone by means of {min(len(images.labels), WHITENING_SAMPLE)} images of {name}."
        ]
    grey = values / (2 * np.quantile(np.abs(values), 0.99)) + 0.5
    return grey, [f"The set is whitened; its true colours need its source: condense-once data get {source}."]
