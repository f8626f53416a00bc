"""A grid image of tiles, as papers and `save_image` show condensed sets: one class per row, 8 bits per channel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile, Question
from condense_once.condensed.importers.sniff import OpenedFiles
from condense_once.errors import BadOption

BORDER = 2  # pixels, as torchvision's `save_image` draws it


def _recognises(opened: OpenedFiles) -> bool:
    return opened.kind == "image" and len(opened.values) == 1


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    image = opened.values[0]  # [3, h, w]
    tile, border, shrink = options.tile, BORDER if options.border is None else options.border, options.shrink or 1
    if tile is None:
        unknown = Question("`tile`", "does not record the size of its tiles", "(32 for CIFAR)")
        return ParsedFile(image[None], np.zeros(1, np.int64), space="pixels", questions=(unknown,))
    if tile < 1 or border < 0 or tile % shrink:
        raise BadOption(
            f"`tile` must be positive, `border` not negative and `shrink` a divisor of `tile`,"
            f" not {tile}, {border} and {shrink}."
        )
    step = tile + border
    height, width = (side - border for side in image.shape[1:])
    down, across = (_in_border(side, tile, border) for side in image.shape[1:])
    lines = image[:, down[:, None] | across]
    if height < step or width < step or height % step or width % step or (lines != lines[:, :1]).any():
        raise BadOption(
            f"{opened.names[0]}, {image.shape[2]}×{image.shape[1]} pixels, is not a grid of {tile}-pixel tiles with plain"
            f" borders of {border}; pass another `tile` or `border`."
        )
    rows, columns = height // step, width // step
    inner = image[:, border:, border:].reshape(3, rows, step, columns, step)
    tiles = inner[:, :, :tile, :, :tile].transpose(1, 3, 0, 2, 4).reshape(-1, 3, tile, tile)
    images, notes = _shrunk(tiles, shrink)
    notes.append(f"{rows} × {columns} tiles, taken as one class per row; values have 8 bits, as in the image.")
    return ParsedFile(images, np.repeat(np.arange(rows), columns), space="pixels", notes=tuple(notes))


def _in_border(side: int, tile: int, border: int) -> NDArray[np.bool_]:
    """Which pixel lines along one side are border."""
    line = np.arange(side)
    return (line < border) | ((line - border) % (tile + border) >= tile)


def _shrunk(tiles: NDArray[np.uint8], shrink: int) -> tuple[NDArray[np.uint8], list[str]]:
    """The tiles before each pixel was repeated `shrink` times in both directions; of unequal repeats, their mean."""
    if shrink == 1:
        return np.ascontiguousarray(tiles), []
    count, channels, side, _ = tiles.shape
    blocks = tiles.reshape(count, channels, side // shrink, shrink, side // shrink, shrink)
    spread = int((blocks.max(axis=(3, 5)) - blocks.min(axis=(3, 5))).max())
    small = np.rint(blocks.mean(axis=(3, 5), dtype=np.float32)).astype(np.uint8)
    inexact = f"Pixels of one {shrink}×{shrink} block differ by up to {spread} of 255; their mean is stored."
    return small, [inexact] if spread else []


FORMAT = Format(
    "grid", "an image of tiles, one class per row", _recognises, _read, frozenset({"tile", "border", "shrink"})
)
