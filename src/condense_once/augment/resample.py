"""Bilinear resampling that is fast on a CPU, differentiable any number of times, and compiles to one loop.

`torch.nn.functional.grid_sample` has a normalised grid, in which a shift by whole pixels is inexact, and is slower when
compiled. Four gathers in plain tensor operations do better. Batch 64×3×32×32, one thread of an AMD EPYC, torch 2.13,
median of 100 runs, in ms (2026-11-15):

=============  =============  ===================  ================  ======================
sampler        eager forward  eager with backward  compiled forward  compiled with backward
=============  =============  ===================  ================  ======================
grid_sample    1.3            3.2                  3.4               5.4
four gathers   1.4            3.2                  1.1               3.2
=============  =============  ===================  ================  ======================
"""

from __future__ import annotations

import torch
from torch import Tensor


def bilinear(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Read `x` at fractional pixel positions; outside the image the nearest edge pixel is used.

    Args:
        x: images `[n, ch, h, w]`, at least two pixels high and wide.
        rows: positions `[n or 1, h', w' or 1]`, where 0 is the centre of the first row.
        columns: positions `[n or 1, h' or 1, w']`.

    Returns:
        `[n, ch, h', w']`.

    >>> x = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> bilinear(x, torch.tensor([[[0.5]]]), torch.tensor([[[0.0, 0.25, 7.0]]]))
    tensor([[[[1.0000, 1.2500, 2.0000]]]])
    """
    n, ch, h, w = x.shape
    top, down = _split(rows, h)
    left, right = _split(columns, w)
    first = (top * w + left).long()  # [n or 1, h', w']: index of the top left of four neighbours
    shape = (n, ch, *first.shape[1:])
    first = first.flatten(1).unsqueeze(1).expand(n, ch, -1)
    pixels = x.flatten(2)

    def neighbour(offset: int) -> Tensor:
        # A shifted view and one shared index: adding the offset would materialise the index for every channel.
        return pixels[:, :, offset:].gather(2, first).view(shape)

    right, down = right.unsqueeze(1).to(x.dtype), down.unsqueeze(1).to(x.dtype)
    upper = torch.lerp(neighbour(0), neighbour(1), right)
    lower = torch.lerp(neighbour(w), neighbour(w + 1), right)
    return torch.lerp(upper, lower, down)


def resample(x: Tensor, matrix: Tensor) -> Tensor:
    """Warp each image by its own affine map; outside the image is 0.

    The pixel at `(u, v)` right of and below the centre is read at `matrix @ (u, v, 1)`. Coordinates are in pixels from the
    centre, so, unlike with the normalised `theta` of `affine_grid`, a shift by whole pixels is exact at every size.

    Zero padding needs no padding: along one axis of length `h`, the zero-extended interpolation at position `p` equals the
    edge-extended one times `clamp(min(p + 1, h - p), 0, 1)`.

    Args:
        x: images `[n, ch, h, w]`.
        matrix: `[n, 2, 3]`, or `[1, 2, 3]` for one map shared by all.
    """
    h, w = x.shape[-2:]
    (a, b, right), (c, d, down) = (row.unbind(-1) for row in matrix.to(x.device)[:, None, None].unbind(-2))
    u = torch.arange(w, device=x.device) - (w - 1) / 2  # [w]
    v = (torch.arange(h, device=x.device) - (h - 1) / 2).unsqueeze(1)  # [h, 1]
    columns = a * u + b * v + right + (w - 1) / 2  # [n or 1, h, w]
    rows = c * u + d * v + down + (h - 1) / 2
    covered = _covered(rows, h) * _covered(columns, w)
    return bilinear(x, rows, columns) * covered.unsqueeze(1).to(x.dtype)


def _split(position: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The pixel before a position, which always has a next one, and the fraction of the way to that, in [0, 1]."""
    position = position.clamp(0, length - 1)
    before = position.floor().clamp(max=length - 2)
    return before, position - before


def _covered(position: Tensor, length: int) -> Tensor:
    return torch.minimum(position + 1, length - position).clamp(0, 1)
