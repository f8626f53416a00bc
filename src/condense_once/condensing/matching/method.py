"""What a matching method registers: a recipe for the images at hand, and a builder that is imported to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.nets.registry import Shape
from condense_once.registry import Lazy

if TYPE_CHECKING:
    from condense_once.condensing.condenser import Condenser, Task

RecipeFor = Callable[[Shape, int, int], MatchingRecipe]  # (shape, ipc, factor) → the paper's settings

LEARNING_RATES = frozenset({"image_lr", "net_lr"})  # which a resumed run may change


def matching(recipe_for: RecipeFor) -> Callable[[Task, Mapping[str, Any] | None], Condenser]:
    """The builder of a matching method, from its recipe."""
    return partial(Lazy("condense_once.condensing.matching.build:build_matching"), recipe_for)
