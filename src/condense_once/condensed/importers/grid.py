"""A picture of tiles, as papers and `save_image` show condensed sets: one class a row, 8 bits a colour."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile
from condense_once.condensed.importers.sniff import Content
from condense_once.errors import BadOption

BORDER = 2  # pixels, as torchvision's `save_image` draws it


def _recognises(content: Content) -> bool:
    return content.kind == "picture" and len(content.values) == 1


def _read(content: Content, facts: ImportOptions) -> ParsedFile:
    picture = content.values[0]  # [3, h, w]
    tile, border = facts.tile, BORDER if facts.border is None else facts.border
    if tile is None:
        raise BadOption(f"How large the tiles of {content.names[0]} are cannot be known; pass --tile (32 for CIFAR).")
    if tile < 1 or border < 0:
        raise BadOption(f"Tiles of {tile} pixels with borders of {border} cannot be.")
    step = tile + border
    height, width = (side - border for side in picture.shape[1:])
    down, across = (_in_border(side, tile, border) for side in picture.shape[1:])
    lines = picture[:, down[:, None] | across]
    if height < step or width < step or height % step or width % step or (lines != lines[:, :1]).any():
        raise BadOption(
            f"{content.names[0]}, {picture.shape[2]}×{picture.shape[1]} pixels, is no grid of {tile}-pixel tiles with plain"
            f" borders of {border}; pass the right --tile and --border."
        )
    rows, columns = height // step, width // step
    inner = picture[:, border:, border:].reshape(3, rows, step, columns, step)
    tiles = inner[:, :, :tile, :, :tile].transpose(1, 3, 0, 2, 4).reshape(-1, 3, tile, tile)
    return ParsedFile(
        np.ascontiguousarray(tiles),
        np.repeat(np.arange(rows), columns),
        space="pixels",
        notes=(f"{rows} rows of {columns} tiles, taken as one class a row; colours are 8 bits, as in the picture.",),
    )


def _in_border(side: int, tile: int, border: int) -> NDArray[np.bool_]:
    """Which of the lines along one side lie between tiles."""
    line = np.arange(side)
    return (line < border) | ((line - border) % (tile + border) >= tile)


FORMAT = Format("grid", "a picture of tiles, one class a row", _recognises, _read, frozenset({"tile", "border"}))
