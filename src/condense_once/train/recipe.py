"""How a network is trained: optimiser, schedule, augmentation. Frozen data, part of a protocol's identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from condense_once.errors import BadOption


@dataclass(frozen=True)
class Recipe:
    """SGD with momentum and two drops of the learning rate; the defaults are IDC's evaluation on CIFAR.

    >>> recipe = Recipe(epochs=1000)
    >>> [round(recipe.rate(epoch), 6) for epoch in (0, 665, 666, 833)]
    [0.01, 0.01, 0.002, 0.0004]
    """

    epochs: int = 1000
    batch: int = 64
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    gamma: float = 0.2  # at two thirds and five sixths of the way
    schedule: Literal["epoch", "iteration"] = "epoch"  # where drops may fall; IDC records dynamics by iteration
    augmentation: str = "color_crop_flip_scale_rotate"  # or `imagenet`
    cutmix: float = 0.5  # probability

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise BadOption(
                f"Training needs at least one epoch and one image a batch, not {self.epochs} and {self.batch}."
            )
        if not self.lr > 0:
            raise BadOption(f"The learning rate must be above zero, not {self.lr}.")

    def rate(self, epoch: int, step: int = 0, steps: int = 1) -> float:
        """The learning rate of a step, of so many steps an epoch."""
        at, end = (epoch, self.epochs) if self.schedule == "epoch" else (epoch * steps + step, self.epochs * steps)
        return self.lr * self.gamma ** ((at >= 2 * end // 3) + (at >= 5 * end // 6))
