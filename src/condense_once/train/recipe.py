"""How a network is trained: optimiser, schedule, augmentation. Part of a protocol's id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from condense_once.errors import BadOption


@dataclass(frozen=True)
class Recipe:
    """SGD with momentum and a multi-step schedule; the defaults are IDC's evaluation on CIFAR.

    >>> recipe = Recipe(epochs=1000)
    >>> [round(recipe.lr_at(epoch), 6) for epoch in (0, 665, 666, 833)]
    [0.01, 0.01, 0.002, 0.0004]
    """

    epochs: int = 1000
    batch: int = 64
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    gamma: float = 0.2  # factor of the learning rate at 2/3 and 5/6 of the epochs
    schedule: Literal["epoch", "iteration"] = "epoch"  # when it may drop; IDC records dynamics with drops by iteration
    augmentation: str = "color_crop_flip_scale_rotate"  # or `imagenet`
    cutmix: float = 0.5  # probability

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise BadOption(f"Training needs `epochs` and `batch` of at least 1, not {self.epochs} and {self.batch}.")
        if not self.lr > 0:
            raise BadOption(f"The learning rate `lr` must be above 0, not {self.lr}.")

    def lr_at(self, epoch: int, step: int = 0, steps: int = 1) -> float:
        """The learning rate at a step of an epoch of `steps` steps."""
        at, end = (epoch, self.epochs) if self.schedule == "epoch" else (epoch * steps + step, self.epochs * steps)
        return self.lr * self.gamma ** ((at >= 2 * end // 3) + (at >= 5 * end // 6))
