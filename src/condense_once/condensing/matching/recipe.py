"""The settings of a matching method, as frozen data: a method is a function that fills this in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from condense_once.augment.names import parse_names
from condense_once.condensing.recipe_fields import ImageSpace, Init, check_choices, check_least, override_fields
from condense_once.errors import BadOption

Distance = Literal["mse", "l1", "cosine", "features"]
NetData = Literal["real", "synthetic", "none"]
Decoding = Literal["single", "bound"]


@dataclass(frozen=True)
class MatchingRecipe:
    """Update the images of each class until their gradients or features match those of real images, for many networks."""

    method: str
    space: ImageSpace  # of the optimised values; pixels are clamped to 0…1 before each network
    init: Init  # first or random real images of each class, k-means representatives, noise, or a given set
    distance: Distance  # between gradients of the loss (mse, l1, cosine) or between mean features
    iterations: int  # networks, each re-initialised; 0 returns the initial images
    steps: int  # image updates of every class with one network
    image_lr: float
    image_momentum: float = 0.5
    idle_momentum: bool = False  # momentum also moves a class during the others' updates, as one optimiser for all does
    decode: Decoding = "single"
    real_batch: int = 64  # real images of one class per step
    max_patches: int = 128  # synthetic patches of one class per step, at most
    augmentation: str = "none"  # siamese: the same for the real and synthetic images of a step
    single_op: bool = False  # DSA: one operation of the augmentation per step, not all
    reselect_every: int = 0  # steps between two k-means selections of the real batch (DREAM); 0: shuffled batches
    pool: int = 0  # real images of a class that k-means runs on; 0: all
    subset_period: int = 0  # networks between two choices of a subset with a loss of its own (MDC); 0: no such loss
    net_data: NetData = "none"  # what the network is trained on between steps
    net_images: int = 0  # real images per network update
    net_epochs: int = 0  # epochs on the synthetic images per network update
    pretrain_epochs: int = 0  # on real images, before a network's first step
    net_lr: float = 0.01
    net_momentum: float = 0.9
    net_weight_decay: float = 5e-4
    net_batch: int = 64
    net_short_batch: bool = False  # whether the short last batch of an epoch on real images is kept
    net_augmentation: str = "none"
    net_cutmix: float = 0.0  # probability

    def __post_init__(self) -> None:
        check_choices(self)
        least = {"iterations": 0, "steps": 1, "real_batch": 1, "max_patches": 1, "net_batch": 1}
        least |= dict.fromkeys(
            ("reselect_every", "pool", "subset_period", "net_images", "net_epochs", "pretrain_epochs"), 0
        )
        check_least(self, least)
        if not all(math.isfinite(lr) and lr > 0 for lr in (self.image_lr, self.net_lr)):
            raise BadOption(f"Learning rates must be above zero, not {self.image_lr} and {self.net_lr}.")
        if not (math.isfinite(self.net_weight_decay) and self.net_weight_decay >= 0):
            raise BadOption(f"The recipe's net_weight_decay must be at least zero, not {self.net_weight_decay}.")
        if not 0 <= self.image_momentum < 1 or not 0 <= self.net_momentum < 1:
            raise BadOption(f"Momentum must be in [0, 1), not {self.image_momentum} and {self.net_momentum}.")
        if self.net_data == "real" and not self.net_images:
            raise BadOption("Network updates on real images need net_images above zero.")
        for strategy in (self.augmentation, self.net_augmentation):
            parse_names(strategy)
        if not 0 <= self.net_cutmix <= 1:
            raise BadOption(f"The recipe's net_cutmix must be from 0 to 1, not {self.net_cutmix}.")

    def override(self, overrides: Mapping[str, Any]) -> MatchingRecipe:
        """The same recipe with other values of some fields; numbers and booleans may be given as text."""
        return override_fields(self, overrides)
