"""Multi-formation: a stored image is a mosaic of factor × factor cells; an upsampled cell is a patch.

The geometry follows IDC to the pixel, since scores, rankings and published files refer to patches by index:

* cells are cut row by row from the mosaic; if the side is not divisible by the factor, the mosaic is first padded on the
  right and bottom with mid-grey (224 / 3 → one line → cells of 75);
* patches are indexed class by class, within a class cell by cell, within a cell image by image, so neighbours are *the
  same cell of different images*;
* a patch is the cell upsampled to the size of the mosaic, bilinear with `align_corners=False`.

This needs only numpy, so that small devices can decode, too.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption

Floats = NDArray[np.float32]
MAX_FACTOR = 16  # a patch is factor² times as large as its cell, so without a limit a small file decodes to gigabytes


def patch_sources(labels: NDArray[Any], factor: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The stored image and the cell of every patch, in index order.

    `labels` are those of the stored images, in any order and number per class; images of one class keep their order.
    """
    images: list[NDArray[np.int64]] = []
    cells: list[NDArray[np.int64]] = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        images.append(np.tile(members, factor**2))
        cells.append(np.repeat(np.arange(factor**2), len(members)))
    return np.concatenate(images), np.concatenate(cells)


def cell_size(size: tuple[int, int], factor: int) -> tuple[int, int]:
    """Height and width of a cell of a mosaic of `size`.

    >>> cell_size((32, 32), 2), cell_size((224, 224), 3)
    ((16, 16), (75, 75))
    """
    height, width = size
    most = min(*size, MAX_FACTOR)
    if factor > min(size):
        raise BadOption(f"`factor` {factor} leaves no pixels in images of {height}×{width}; pass 1 to {most}.")
    if not 1 <= factor <= most:
        raise BadOption(f"`factor` must be 1 to {most}, not {factor}.")
    return -(-height // factor), -(-width // factor)


def cut(mosaics: NDArray[Any], factor: int, fill: float | NDArray[Any] = 0.5) -> NDArray[Any]:
    """Cut mosaics `[n, ch, h, w]` into cells `[factor², n, ch, sh, sw]`, padding with `fill` (a number, or one per channel)."""
    count, channels, height, width = mosaics.shape
    rows, columns = cell_size((height, width), factor)
    padded = mosaics
    if (rows * factor, columns * factor) != (height, width):
        padded = np.empty((count, channels, rows * factor, columns * factor), mosaics.dtype)
        padded[:] = np.broadcast_to(fill, channels)[:, None, None]
        padded[:, :, :height, :width] = mosaics
    grid = padded.reshape(count, channels, factor, rows, factor, columns)
    return grid.transpose(2, 4, 0, 1, 3, 5).reshape(factor**2, count, channels, rows, columns)


def join(cells: NDArray[Any], factor: int, size: tuple[int, int]) -> NDArray[Any]:
    """Put cells `[factor², n, ch, sh, sw]` back into mosaics `[n, ch, h, w]`: the inverse of `cut`.

    If the side is not divisible, the last row and column of cells lose the lines that `cut` padded.
    """
    _, count, channels, rows, columns = cells.shape
    grid = cells.reshape(factor, factor, count, channels, rows, columns).transpose(2, 3, 0, 4, 1, 5)
    return grid.reshape(count, channels, factor * rows, factor * columns)[:, :, : size[0], : size[1]]


def encode(images: NDArray[Any], factor: int) -> NDArray[Any]:
    """Downsample `k·factor²` images of one class into `k` mosaics of the same size (IDC's init).

    Cell c of the mosaics receives the images `c·k … (c+1)·k−1`, by nearest neighbour. If the side is not divisible, the
    first cells are one pixel larger (224 / 3 → 75, 75, 74).
    """
    total, channels, height, width = images.shape
    cell_size((height, width), factor)
    if total % factor**2:
        raise BadOption(
            f"{total} images do not fill mosaics of {factor}×{factor} cells; pass a multiple of {factor**2}."
        )
    mosaics = np.empty((total // factor**2, channels, height, width), images.dtype)
    groups = images.reshape(factor**2, -1, channels, height, width)
    for row, (top, bottom) in enumerate(_cell_edges(height, factor)):
        for column, (left, right) in enumerate(_cell_edges(width, factor)):
            picked = groups[row * factor + column][:, :, _nearest(height, bottom - top)]
            mosaics[:, :, top:bottom, left:right] = picked[..., _nearest(width, right - left)]
    return mosaics


def upsample(cells: NDArray[Any], size: tuple[int, int]) -> Floats:
    """Upsample cells `[n, ch, sh, sw]` to patches `[n, ch, h, w]`, bilinear like PyTorch with `align_corners=False`."""
    values = np.ascontiguousarray(cells, dtype=np.float32)
    if values.shape[2:] == size:
        return values
    down, across = _bilinear(values.shape[2], size[0]), _bilinear(values.shape[3], size[1])
    patches: Floats = down @ (values @ across.T)
    return patches


def _cell_edges(side: int, factor: int) -> list[tuple[int, int]]:
    small, larger = divmod(side, factor)
    edges = np.cumsum([0] + [small + (k < larger) for k in range(factor)])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def _nearest(source: int, target: int) -> NDArray[np.int64]:
    scale = np.float32(source) / np.float32(target)  # PyTorch's arithmetic, in single precision
    nearest: NDArray[np.int64] = np.floor(np.arange(target, dtype=np.float32) * scale).astype(np.int64)
    return nearest.clip(max=source - 1)


def _bilinear(source: int, target: int) -> Floats:
    """The `[target, source]` matrix of interpolation weights along one axis."""
    scale = np.float32(source) / np.float32(target)
    # PyTorch fuses multiply and subtract, rounding to single precision once
    centre = np.maximum((np.arange(target) + 0.5) * np.float64(scale) - 0.5, 0).astype(np.float32)
    low = np.floor(centre).astype(np.int64)
    weight = centre - low.astype(np.float32)
    weights = np.zeros((target, source), np.float32)
    rows = np.arange(target)
    np.add.at(weights, (rows, low), 1 - weight)
    np.add.at(weights, (rows, np.minimum(low + 1, source - 1)), weight)
    return weights
