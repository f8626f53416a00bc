"""Mosaics to patches inside a graph, so that a patch's gradient reaches the pixels it was enlarged from.

The geometry is that of `condense_once.condensed.mosaic`, which stays the reference: the numbering, the padding and the
bilinear enlargement are the same.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from condense_once.condensed.mosaic import cell_size
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.problem import Problem


def decode(mosaics: Tensor, factor: int, fill: Tensor) -> Tensor:
    """Patches `[factor²·n, ch, h, w]` of the mosaics `[n, ch, h, w]` of one class, all of the first cell first.

    Where the side is not divisible the mosaics are padded on the right and bottom with `fill`, one number per channel.
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


def decode_within(mosaics: Tensor, factor: int, fill: Tensor, bound: int) -> Tensor:
    """At most about `bound` patches: the first mosaics at the full factor, later ones at smaller ones (IDC's `bound`)."""
    parts, start = [], 0
    for part_factor, images in shares(len(mosaics), factor, bound):
        parts.append(decode(mosaics[start : start + images], part_factor, fill))
        start += images
    return torch.cat(parts)


def shares(images: int, factor: int, bound: int) -> list[tuple[int, int]]:
    """How many images are decoded at which factor, so that the patches of all stay within `bound`.

    Each factor takes as many images as fit while every later image still has room for itself.

    >>> shares(20, 3, 128), shares(10, 3, 128), shares(50, 3, 128)
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


def matched_patches(problem: Problem, recipe: MatchingRecipe) -> int:
    """How many patches of a class are decoded to be matched, before a part of them is drawn."""
    if recipe.decode != "bound":
        return problem.patches_per_class
    return sum(images * factor**2 for factor, images in shares(problem.ipc, problem.factor, recipe.patches))


def _grey(fill: Tensor, count: int, height: int, width: int) -> Tensor:
    return fill[:, None, None].expand(count, -1, height, width)
