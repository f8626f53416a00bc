"""Mosaics to patches inside the autograd graph, so that a patch's gradient reaches the pixels it was upsampled from.

The geometry is that of `condense_once.condensed.mosaic`, the reference: same numbering, padding and bilinear upsampling.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from condense_once.condensed.mosaic import cell_size


def decode(mosaics: Tensor, factor: int, fill: Tensor) -> Tensor:
    """Patches `[factor²·n, ch, h, w]` of the mosaics `[n, ch, h, w]` of one class, all of the first cell first.

    Sides that the factor does not divide are padded on the right and bottom with `fill`, one value per channel.
    """
    count, channels, height, width = mosaics.shape
    if factor == 1:
        return mosaics
    rows, columns = cell_size((height, width), factor)
    padded = mosaics
    if columns * factor > width:
        padded = torch.cat([padded, _grey(fill, count, height, columns * factor - width)], dim=3)
    if rows * factor > height:
        padded = torch.cat([padded, _grey(fill, count, rows * factor - height, columns * factor)], dim=2)
    grid = padded.reshape(count, channels, factor, rows, factor, columns)
    cells = grid.permute(2, 4, 0, 1, 3, 5).reshape(-1, channels, rows, columns)
    return interpolate(cells, (height, width), mode="bilinear", align_corners=False)


def decode_bounded(mosaics: Tensor, factor: int, fill: Tensor, bound: int) -> Tensor:
    """About `bound` patches at most: the first mosaics at the full factor, later ones at smaller ones (IDC's `bound`)."""
    parts, start = [], 0
    for part_factor, images in factors_within(len(mosaics), factor, bound):
        parts.append(decode(mosaics[start : start + images], part_factor, fill))
        start += images
    return torch.cat(parts)


def factors_within(images: int, factor: int, bound: int) -> list[tuple[int, int]]:
    """Which factor decodes how many images, so that all patches stay within `bound`.

    Each factor takes as many images as fit while every later image still yields one patch.

    >>> factors_within(20, 3, 128), factors_within(10, 3, 128), factors_within(50, 3, 128)
    ([(3, 12), (2, 3), (1, 5)], [(3, 10)], [(3, 8), (2, 3), (1, 39)])
    """
    found, made, left = [], 0, images
    for part_factor in range(factor, 0, -1):
        room = bound - made - left
        taken = left if part_factor == 1 else min(max(room, 0) // part_factor**2, left)
        if taken:
            found.append((part_factor, taken))
        made, left = made + taken * part_factor**2, left - taken
    return found


def _grey(fill: Tensor, count: int, height: int, width: int) -> Tensor:
    return fill[:, None, None].expand(count, -1, height, width)
