"""All patches of a set in one image, for pages: one file instead of thousands."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

from condense_once.condensed.contact_sheet import display_pixels
from condense_once.condensed.set import CondensedSet

PAD = 1  # pixels around a tile that repeat its edge, so that scaling it never shows its neighbours
MAX_SIDE = 96  # pixels of a tile
MAX_PIXELS = 10_000_000  # of all tiles
LOSSLESS_PIXELS = 300_000  # up to here every pixel is exact
QUALITY = 82  # of larger sheets
CHUNK = 1024  # patches decoded at a time


@dataclass(frozen=True)
class Sprite:
    """Tiles in rows of `columns`, each `width`×`height` pixels and surrounded by `PAD` more."""

    content: bytes  # of the image file
    kind: str  # its media type
    columns: int
    width: int
    height: int
    notes: tuple[str, ...] = ()  # on colours

    @property
    def url(self) -> str:
        return f"data:{self.kind};base64,{b64encode(self.content).decode()}"


def sprite_of(data: CondensedSet) -> Sprite:
    """The patches of a set in stored order, at the size of their cells, or smaller if there are very many."""
    pixels, notes = cell_pixels(data)
    height, width = tile_size((data.cells.shape[2], data.cells.shape[3]), len(data))
    return draw_sprite(scaled(pixels, height, width), notes)


def cell_pixels(data: CondensedSet) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """8-bit pixels `[N, 3, h, w]` of all patches, at the size of their cells, and notes on colours."""
    parts, notes = [], dict[str, None]()
    if data.space.kind != "zca":  # whitening is undone at the full size
        data = replace(data, factor=1, size=(data.cells.shape[2], data.cells.shape[3]))
    for start in range(0, len(data), CHUNK):
        pixels, remarks = display_pixels(data, np.arange(start, min(start + CHUNK, len(data))))
        parts.append(in_colour(pixels))
        notes |= dict.fromkeys(remarks)
    return np.concatenate(parts), tuple(notes)


def in_colour(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Three channels, also of grey images."""
    return np.broadcast_to(pixels, (len(pixels), 3, *pixels.shape[2:]))


def draw_sprite(tiles: NDArray[np.uint8], notes: tuple[str, ...] = ()) -> Sprite:
    """Arrange tiles `[n, h, w, 3]` in a sheet about as wide as high."""
    count, height, width, _ = tiles.shape
    columns = ceil(sqrt(count))
    rows = ceil(count / columns)
    padded = np.pad(tiles, ((0, rows * columns - count), (PAD, PAD), (PAD, PAD), (0, 0)), mode="edge")
    grid = padded.reshape(rows, columns, height + 2 * PAD, width + 2 * PAD, 3)
    sheet = Image.fromarray(np.ascontiguousarray(grid.swapaxes(1, 2)).reshape(rows * (height + 2 * PAD), -1, 3))
    out = io.BytesIO()
    if not features.check("webp"):
        sheet.save(out, "PNG", optimize=True)
        return Sprite(out.getvalue(), "image/png", columns, width, height, notes)
    lossless = count * height * width <= LOSSLESS_PIXELS
    sheet.save(out, "WEBP", lossless=lossless, quality=80 if lossless else QUALITY, method=4)
    return Sprite(out.getvalue(), "image/webp", columns, width, height, notes)


def tile_size(cell: tuple[int, int], count: int) -> tuple[int, int]:
    """Height and width of a tile: those of a cell, or less, so that the sheet stays small.

    >>> tile_size((16, 16), 20_000), tile_size((224, 224), 1000)
    ((16, 16), (96, 96))
    """
    most = min(MAX_SIDE, int(sqrt(MAX_PIXELS / count)))
    scale = min(1.0, most / max(cell))
    return max(1, round(cell[0] * scale)), max(1, round(cell[1] * scale))


def scaled(images: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Tiles `[n, h, w, 3]` of images `[n, 3, h, w]`."""
    tiles = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    if tiles.shape[1:3] == (height, width):
        return tiles
    smaller = (Image.fromarray(tile).resize((width, height), Image.Resampling.BOX) for tile in tiles)
    return np.stack([np.asarray(tile) for tile in smaller])
