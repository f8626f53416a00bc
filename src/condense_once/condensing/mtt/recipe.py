"""The settings of matching training trajectories, as frozen data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from condense_once.augment.names import SINGLE_OP, parse_names
from condense_once.condensing.recipe_fields import Init, check_choices, check_least, override_fields
from condense_once.errors import BadOption

POSITIVE = ("image_lr", "student_lr", "expert_lr", "zca_regularisation")


@dataclass(frozen=True)
class MttRecipe:
    """Update the images of all classes until students that train on them end where experts are epochs later."""

    method: str
    init: Init
    iterations: int  # students, each with one update of the images and of the step size; 0 returns the initial images
    student_steps: int  # SGD steps of a student
    ahead: int  # snapshots from the expert's weights that a student starts from to those that it should end at
    max_start: (
        int  # a student starts from one of an expert's first so many snapshots, if there are as many to start from
    )
    image_lr: float
    student_lr: float  # step size of the students, at first; it is learned
    lr_lr: float  # learning rate of the step size; 0: it stays
    image_momentum: float = 0.5  # of the step size, too
    final_lr: float = 1.0  # factor that the image learning rate falls to along a cosine; 1: it stays
    student_batch: int = 0  # patches of a student's step; 0: all
    recompute: bool = True  # every step is computed twice, instead of keeping all of them in memory
    pool: int = 0  # real images of a class that k-means selects representatives from; 0: all
    augmentation: str = (
        "dsa:color_crop_cutout_flip_scale_rotate"  # of experts and students; dsa: one of these per batch
    )
    space: Literal["pixels", "normalised", "zca"] = "normalised"  # of the optimised values
    zca_regularisation: float = 0.1
    experts: int = 100  # networks trained on real images
    expert_epochs: int = 50
    expert_every: int = 1  # epochs between two snapshots
    expert_batch: int = 256
    expert_batches: int = 0  # of an epoch; 0: one pass over the real images
    expert_lr: float = 0.01

    def __post_init__(self) -> None:
        check_choices(self)
        least = ("student_steps", "ahead", "max_start", "experts", "expert_epochs", "expert_every", "expert_batch")
        check_least(
            self, {**dict.fromkeys(least, 1), "iterations": 0, "student_batch": 0, "pool": 0, "expert_batches": 0}
        )
        for name in POSITIVE:
            if not (math.isfinite(value := getattr(self, name)) and value > 0):
                raise BadOption(f"The recipe's {name} must be above zero, not {value}.")
        if not (math.isfinite(self.lr_lr) and self.lr_lr >= 0):
            raise BadOption(f"The recipe's lr_lr must be at least zero, not {self.lr_lr}.")
        if not 0 <= self.image_momentum < 1:
            raise BadOption(f"The recipe's image_momentum must be in [0, 1), not {self.image_momentum}.")
        if not 0 < self.final_lr <= 1:
            raise BadOption(f"The recipe's final_lr must be in (0, 1], not {self.final_lr}.")
        if self.ahead > self.expert_epochs // self.expert_every:
            raise BadOption(
                f"Experts of {self.expert_epochs} epochs with a snapshot every {self.expert_every} have none that is {self.ahead}"
                " ahead of their start; raise expert_epochs or lower ahead in `overrides`."
            )
        parse_names(self.augmentation.removeprefix(SINGLE_OP))

    def override(self, overrides: Mapping[str, Any]) -> MttRecipe:
        """The same recipe with other values of some fields; numbers and booleans may be given as text."""
        return override_fields(self, overrides)

    @property
    def starts(self) -> int:
        """Snapshots of an expert that students start from: the last of them has one `ahead` of it."""
        return min(self.max_start, self.expert_epochs // self.expert_every - self.ahead + 1)

    def lr_at(self, fraction: float) -> float:
        """The image learning rate when this fraction of the run is done."""
        return self.image_lr * (self.final_lr + (1 - self.final_lr) * (1 + math.cos(math.pi * fraction)) / 2)
