"""Kernels of infinitely wide, fully connected ReLU networks, in closed form (Cho & Saul 2009; Jacot et al. 2018).

With weights of variance 2 / fan-in and biases of variance `BIAS`, layer by layer, for two inputs with K = K(x, y), the geometric
mean S = √(K(x, x)·K(y, y)) and the cosine c = K / S:

* before the first layer K = 2·x·y / d + BIAS and, of the tangent kernel, T = K;
* a hidden layer makes K' = S·(√(1 − c²) + (π − arccos c)·c) / π + BIAS and T' = K' + T·(π − arccos c) / π.

K is the kernel of a random network (NNGP), T that of training all its layers (NTK).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

BIAS = 0.01  # variance of biases, KIP's 0.1²
SAME = 1e-14  # cosines nearer to one are those of equal inputs, where the derivative of arccos is infinite

WideKernel = Literal["ntk", "nngp"]


def wide_kernel(x: Tensor, y: Tensor, kernel: WideKernel, depth: int) -> Tensor:
    """The kernel `[n, m]` between inputs `[n, d]` and `[m, d]` for a network with `depth` hidden layers.

    >>> one = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    >>> [round(float(wide_kernel(one, one, kernel, 1)), 4) for kernel in ("nngp", "ntk")]
    [2.02, 4.03]
    """
    between = _first(x @ y.T, x.shape[1])  # [n, m]
    own = [_first(inputs.square().sum(1), x.shape[1]) for inputs in (x, y)]  # [n] and [m]
    tangent = between
    for _ in range(depth):
        scale = (own[0][:, None] * own[1]).sqrt()
        derivative, mean = _arc_cosine(between / scale)
        between = scale * mean + BIAS
        tangent = between + tangent * derivative
        own = [values + BIAS for values in own]  # the cosine of an input with itself is one
    return tangent if kernel == "ntk" else between


def _first(products: Tensor, size: int) -> Tensor:
    return 2 * products / size + BIAS


def _arc_cosine(cosine: Tensor) -> tuple[Tensor, Tensor]:
    """Of the angle of a cosine, (π − angle) / π and (sin + (π − angle)·cos) / π.

    Equal inputs have a cosine of one, exactly, and there is no gradient along it.
    """
    same = cosine >= 1 - SAME
    inside = torch.where(same, torch.zeros_like(cosine), cosine).clamp(min=-1 + SAME)
    angle = torch.arccos(inside)
    derivative = (torch.pi - angle) / torch.pi
    mean = ((1 - inside.square()).sqrt() + (torch.pi - angle) * inside) / torch.pi
    one = torch.ones_like(cosine)
    return torch.where(same, one, derivative), torch.where(same, one, mean)
