"""What is to be condensed: a source, how small, and in which space; checked before any work is spent on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from condense_once.condensed.mosaic import cell_size
from condense_once.condensed.set import MAX_CLASSES
from condense_once.condensed.space import Space
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.sampling import Rows, rows_by_class
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import Shape


@dataclass(frozen=True)
class Problem:
    """Real images on one side, how many synthetic ones on the other."""

    source: Source
    ipc: int
    factor: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.ipc < 1:
            raise BadOption(f"A condensed set has at least one image per class, not {self.ipc}.")
        if len(self.source.classes) > MAX_CLASSES:
            raise BadOption(
                f"{self.source.name} has {len(self.source.classes)} classes; at most {MAX_CLASSES} can be kept."
            )
        cell_size(self.shape[1:], self.factor)  # says so if the factor leaves no pixels

    @property
    def shape(self) -> Shape:
        return self.source.train.shape

    @property
    def classes(self) -> int:
        return len(self.source.classes)

    @property
    def patches_per_class(self) -> int:
        """Of the synthetic images, with every cell a patch."""
        return self.ipc * self.factor**2

    @cached_property
    def rows(self) -> list[Rows]:
        """The rows of each class in the train split."""
        return rows_by_class(np.asarray(self.source.train.labels), self.classes)

    def space(self, recipe: MatchingRecipe) -> Space:
        return Space(recipe.space, self.source.mean, self.source.std)

    def check(self, recipe: MatchingRecipe) -> None:
        """Refuse what the real images are too few for."""
        needed = 1 if recipe.start in ("noise", "given") else self.patches_per_class
        for name, rows in zip(self.source.classes, self.rows, strict=True):
            if not len(rows):
                raise BadOption(f"Class {name!r} of {self.source.name} has no training images; leave it out.")
            if len(rows) < needed:
                raise BadOption(
                    f"Class {name!r} of {self.source.name} has {len(rows)} training images, but {self.ipc} images per class"
                    f" with factor {self.factor} start from {needed}; lower --ipc or --factor, or pass --set start=noise."
                )

    def pixels(self, rows: Rows, device: torch.device) -> Tensor:
        """Real images `[n, ch, h, w]` on the scale 0…1."""
        return torch.from_numpy(self.source.train.take(rows)).to(device).float() / 255


class Normaliser:
    """Between pixels in 0…1 and what a network wants, for tensors."""

    def __init__(self, space: Space, device: torch.device) -> None:
        self.mean = torch.tensor(space.mean, device=device)[:, None, None]
        self.std = torch.tensor(space.std, device=device)[:, None, None]

    def normalise(self, pixels: Tensor) -> Tensor:
        return (pixels - self.mean) / self.std
