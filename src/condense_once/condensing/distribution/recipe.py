"""The settings of distribution matching along training trajectories, as frozen data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from condense_once.augment.names import parse_names
from condense_once.condensing.recipe_fields import ImageSpace, Init, check_choices, check_least, override_fields
from condense_once.errors import BadOption

Nesting = Literal["prefixes", "stages"]


@dataclass(frozen=True)
class DistributionRecipe:
    """Update the images of all classes until their mean features match those of real images, for many trained networks.

    The networks are snapshots of experts on their way from random to trained weights. The cross-entropy of a snapshot is a
    second loss: every patch should be recognised.
    """

    method: str
    init: Init
    iterations: (
        int  # sampled snapshots, each with new real images and one siamese augmentation; 0 returns the initial images
    )
    steps: int  # image updates with each of them
    image_lr: float
    image_momentum: float = 0.5
    final_lr: float = 1.0  # factor that the learning rate falls to along a cosine; 1: it stays
    cross_entropy: float = 1.0  # weight of the cross-entropy
    ahead: int = 0  # snapshots, at most, by which the network of the cross-entropy is ahead; 0: the same forward pass
    real_batch: int = 128  # real images of one class per iteration
    max_patches: int = 200  # synthetic patches of one class per step, at most
    pool: int = 0  # real images of a class that k-means selects representatives from; 0: all
    augmentation: str = "color_crop_cutout"  # siamese: the same for all images of an iteration
    space: ImageSpace = "pixels"  # of the optimised values; pixels are clamped to 0…1 after every step
    nesting: Nesting = "prefixes"  # of a nested set: match all prefixes in every step, or one after the other
    settled_lr: float = 0.1  # factor of the learning rate for images of earlier stages
    experts: int = 1  # trained networks
    expert_epochs: int = 60
    expert_every: int = 1  # epochs between two snapshots
    expert_batch: int = 128
    expert_batches: int = 0  # of an epoch; 0: one pass over the real images

    def __post_init__(self) -> None:
        check_choices(self)
        least = dict.fromkeys(
            ("steps", "real_batch", "max_patches", "experts", "expert_epochs", "expert_every", "expert_batch"), 1
        )
        check_least(self, {**least, "iterations": 0, "ahead": 0, "pool": 0, "expert_batches": 0})
        if not (math.isfinite(self.image_lr) and self.image_lr > 0):
            raise BadOption(f"The recipe's image_lr must be above zero, not {self.image_lr}.")
        if not 0 <= self.image_momentum < 1:
            raise BadOption(f"The recipe's image_momentum must be in [0, 1), not {self.image_momentum}.")
        if not 0 < self.final_lr <= 1:
            raise BadOption(f"The recipe's final_lr must be in (0, 1], not {self.final_lr}.")
        if not 0 <= self.settled_lr <= 1:
            raise BadOption(f"The recipe's settled_lr must be from 0 to 1, not {self.settled_lr}.")
        if not (math.isfinite(self.cross_entropy) and self.cross_entropy >= 0):
            raise BadOption(f"The recipe's cross_entropy must be at least zero, not {self.cross_entropy}.")
        parse_names(self.augmentation)

    def override(self, overrides: Mapping[str, Any]) -> DistributionRecipe:
        """The same recipe with other values of some fields; numbers and booleans may be given as text."""
        return override_fields(self, overrides)

    def lr_at(self, fraction: float) -> float:
        """The image learning rate when this fraction of the run is done.

        >>> recipe = DistributionRecipe("tgdd", "first", iterations=10, steps=4, image_lr=0.1, final_lr=0.1)
        >>> [round(recipe.lr_at(fraction), 3) for fraction in (0, 0.5, 1)]
        [0.1, 0.055, 0.01]
        """
        return self.image_lr * (self.final_lr + (1 - self.final_lr) * (1 + math.cos(math.pi * fraction)) / 2)
