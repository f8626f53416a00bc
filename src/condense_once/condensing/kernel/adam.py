"""Adam on one tensor, as state that can be saved between any two steps."""

from __future__ import annotations

import torch
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class Adam:
    """Kingma & Ba (2015); the number of steps made is the caller's to know."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.mean, self.square = torch.zeros_like(values), torch.zeros_like(values)

    def step(self, gradient: Tensor, lr: float, steps: int) -> None:
        """Step number `steps`, counted from one."""
        self.mean.lerp_(gradient, 1 - BETAS[0])
        self.square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        mean, square = (value / (1 - beta**steps) for value, beta in zip((self.mean, self.square), BETAS, strict=True))
        self.values.sub_(lr * mean / (square.sqrt() + EPSILON))
