"""What a method of distribution matching registers: a recipe for the images at hand, and a builder imported to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from condense_once.condensing.distribution.recipe import DistributionRecipe
from condense_once.nets.registry import Shape
from condense_once.registry import Lazy

if TYPE_CHECKING:
    from condense_once.condensing.condenser import Condenser, Task

RecipeFor = Callable[[Shape, int, int], DistributionRecipe]  # (shape, ipc, factor) → the paper's settings

RESUME_WITH = frozenset({"image_lr"})  # what a resumed run may change


def distribution(recipe_for: RecipeFor) -> Callable[[Task, Mapping[str, Any] | None], Condenser]:
    """The builder of a method, from its recipe."""
    return partial(Lazy("condense_once.condensing.distribution.build:build_distribution"), recipe_for)
