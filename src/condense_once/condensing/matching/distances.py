"""Distances between the statistics of real and synthetic images: pure functions on lists of tensors.

The tensors are gradients, one per weight and of its shape; for DM they are one tensor, the mean features of a class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from condense_once.condensing.matching.recipe import Distance

EPSILON = 1e-6  # DC's, in the denominator of the cosine

Statistics = Sequence[Tensor]


def squared_distance(real: Statistics, synthetic: Statistics) -> Tensor:
    """Σ (g − h)² over all entries of all tensors (IDC's `mse`, and DM's ‖mean f − mean h‖²).

    >>> squared_distance([torch.ones(2, 1, 1, 1)], [torch.zeros(2, 1, 1, 1)])
    tensor(2.)
    """
    return _total((g - h).square().sum() for g, h in zip(real, synthetic, strict=True))


def absolute_distance(real: Statistics, synthetic: Statistics) -> Tensor:
    """Σ |g − h| over all entries of all tensors (IDC's `l1`)."""
    return _total((g - h).abs().sum() for g, h in zip(real, synthetic, strict=True))


def cosine_distance(real: Statistics, synthetic: Statistics) -> Tensor:
    """Σ (1 − cos ∠(g, h)) over the rows of all weights, one row per output unit (DC).

    >>> one, other = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[0.0, 1.0], [0.0, 5.0]])
    >>> round(cosine_distance([one], [other]).item(), 4)
    1.0
    """
    return _total(_row_distance(g.flatten(1), h.flatten(1)) for g, h in zip(real, synthetic, strict=True))


DISTANCES: dict[Distance, Callable[[Statistics, Statistics], Tensor]] = {
    "mse": squared_distance,
    "l1": absolute_distance,
    "cosine": cosine_distance,
    "features": squared_distance,
}
# Weights that are matched, by their number of dimensions: IDC matches convolutions, DC linear layers as well.
MATCHED_DIMS: dict[Distance, tuple[int, ...]] = {"mse": (4,), "l1": (4,), "cosine": (2, 4)}


def _row_distance(g: Tensor, h: Tensor) -> Tensor:
    lengths: Tensor = g.norm(dim=1) * h.norm(dim=1)
    return (1 - (g * h).sum(1) / (lengths + EPSILON)).sum()


def _total(parts: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum()
