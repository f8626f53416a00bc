"""The condensing methods by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.nets import Shape, is_large
from condense_once.registry import Registry

RecipeFor = Callable[[Shape, int, int], MatchingRecipe]  # (shape, images per class, factor)


@dataclass(frozen=True)
class CondenserInfo:
    name: str
    summary: str
    recipe: RecipeFor  # the paper's settings for images of this shape
    mosaics: bool = False  # whether the paper stores several patches in one image

    def default_factor(self, shape: Shape) -> int:
        """The factor of the method's paper: 2 for images of up to 64 pixels, 3 for larger ones."""
        if not self.mosaics:
            return 1
        return 3 if is_large(shape) else 2


CONDENSERS: Registry[CondenserInfo] = Registry("condensers")
