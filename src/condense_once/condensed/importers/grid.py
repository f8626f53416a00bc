"""A picture of tiles, as papers and `save_image` show condensed sets: one class a row, 8 bits a colour."""

from __future__ import annotations

import numpy as np

from condense_once.condensed.importers.content import Content
from condense_once.condensed.importers.format import Facts, Format, Found
from condense_once.errors import BadOption


def _recognises(content: Content) -> bool:
    return content.kind == "picture" and len(content.values) == 1


def _read(content: Content, facts: Facts) -> Found:
    picture = content.values[0]  # [3, h, w]
    if facts.tile is None:
        raise BadOption(f"How large the tiles of {content.names[0]} are cannot be known; pass --tile (32 for CIFAR).")
    if facts.tile < 1 or facts.border < 0:
        raise BadOption(f"Tiles of {facts.tile} pixels with borders of {facts.border} cannot be.")
    step = facts.tile + facts.border
    height, width = (side - facts.border for side in picture.shape[1:])
    if height < step or width < step or height % step or width % step:
        raise BadOption(
            f"A picture of {picture.shape[2]}×{picture.shape[1]} pixels is no grid of {facts.tile}-pixel tiles with borders"
            f" of {facts.border}; pass the right --tile and --border."
        )
    rows, columns = height // step, width // step
    inner = picture[:, facts.border :, facts.border :].reshape(3, rows, step, columns, step)
    tiles = inner[:, :, : facts.tile, :, : facts.tile].transpose(1, 3, 0, 2, 4).reshape(-1, 3, facts.tile, facts.tile)
    return Found(
        np.ascontiguousarray(tiles),
        np.repeat(np.arange(rows), columns),
        space="pixels",
        notes=(f"{rows} rows of {columns} tiles, taken as one class a row; colours are 8 bits, as in the picture.",),
    )


FORMAT = Format("grid", "a picture of tiles, one class a row", _recognises, _read)
