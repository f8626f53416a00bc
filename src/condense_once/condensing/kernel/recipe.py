"""The settings of kernel regression on a condensed set, as frozen data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from condense_once.augment.names import parse_names
from condense_once.condensing.recipe_fields import Init, check_choices, check_least, override_fields
from condense_once.data.zca import ZcaMethod
from condense_once.errors import BadOption

LEAST = {
    **dict.fromkeys(("steps", "real_batch", "depth", "networks", "net_age", "net_steps", "net_batch"), 1),
    "iterations": 0,
    "pool": 0,
}
POSITIVE = ("image_lr", "ridge", "net_lr", "zca_regularisation")


@dataclass(frozen=True)
class KernelRecipe:
    """Update images, and labels if they are learned, until kernel ridge regression on them predicts real images.

    The kernel is that of an infinitely wide, fully connected network, in closed form, or of the features of a pool of finite
    networks. These learn from the set as it is, a little at a time, and are initialised again when they are old.
    """

    method: str
    init: Init
    iterations: int  # batches of real images; 0 returns the initial images
    steps: int  # image updates with each of them
    image_lr: float  # of Adam
    kernel: Literal["ntk", "nngp", "features"] = "features"
    depth: int = 3  # hidden layers of the infinitely wide network
    ridge: float = 1e-6  # times the mean of the kernel's diagonal
    label_lr: float = 0.0  # of Adam on the label vectors; 0: labels are not learned
    final_lr: float = 1.0  # factor that both learning rates fall to along a cosine; 1: they stay
    real_batch: int = 1024  # real images of all classes in an iteration
    pool: int = 0  # real images of a class that k-means selects representatives from; 0: all
    augmentation: str = "none"  # siamese: the same for all images of an iteration
    space: Literal["pixels", "normalised", "zca"] = "normalised"  # of the optimised values
    zca: ZcaMethod = "kip"  # how images are whitened, see docs/format.md
    zca_regularisation: float = 0.1
    networks: int = 10  # in the pool
    net_age: int = 100  # updates after which a network is initialised again
    net_steps: int = 1  # updates of a network after an iteration with it
    net_lr: float = 0.01
    net_batch: int = 256  # patches per update
    net_augmentation: str = "none"

    def __post_init__(self) -> None:
        check_choices(self)
        check_least(self, LEAST)
        for name in POSITIVE:
            if not (math.isfinite(value := getattr(self, name)) and value > 0):
                raise BadOption(f"The recipe's {name} must be above zero, not {value}.")
        if not (math.isfinite(self.label_lr) and self.label_lr >= 0):
            raise BadOption(f"The recipe's label_lr must be at least zero, not {self.label_lr}.")
        if not 0 < self.final_lr <= 1:
            raise BadOption(f"The recipe's final_lr must be in (0, 1], not {self.final_lr}.")
        parse_names(self.augmentation)
        parse_names(self.net_augmentation)

    def override(self, overrides: Mapping[str, Any]) -> KernelRecipe:
        """The same recipe with other values of some fields; numbers and booleans may be given as text."""
        return override_fields(self, overrides)

    def decay_at(self, fraction: float) -> float:
        """The factor of the learning rates when this fraction of the run is done.

        >>> recipe = KernelRecipe("kip", "first", iterations=10, steps=1, image_lr=0.1, final_lr=0.1)
        >>> [round(recipe.decay_at(fraction), 3) for fraction in (0, 0.5, 1)]
        [1.0, 0.55, 0.1]
        """
        return self.final_lr + (1 - self.final_lr) * (1 + math.cos(math.pi * fraction)) / 2
