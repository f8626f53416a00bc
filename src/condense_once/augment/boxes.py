"""Boxes as data: four integers per image, so that one compiled program serves all of them."""

from __future__ import annotations

import torch
from torch import Tensor


def inside(boxes: Tensor, height: int, width: int) -> Tensor:
    """The mask of each box `(top, bottom, left, right)`, ends excluded; parts outside the image are ignored.

    Boxes are integers `[n, 4]`, all zeros for an empty box; the mask is `[n, 1, height, width]`.

    >>> inside(torch.tensor([[-1, 1, 1, 3]]), 2, 3).int()
    tensor([[[[0, 1, 1],
              [0, 0, 0]]]], dtype=torch.int32)
    """
    top, bottom, left, right = boxes[:, :, None, None, None].unbind(1)  # each [n, 1, 1, 1]
    row = torch.arange(height, device=boxes.device).unsqueeze(1)
    column = torch.arange(width, device=boxes.device)
    return (row >= top) & (row < bottom) & (column >= left) & (column < right)
