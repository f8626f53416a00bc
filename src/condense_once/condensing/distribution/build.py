"""From a method's recipe and a task to a condenser, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condense_once.condensing.condenser import Task
from condense_once.condensing.distribution.loop import DistributionCondenser
from condense_once.condensing.distribution.method import RESUME_WITH, RecipeFor
from condense_once.condensing.distribution.recipe import DistributionRecipe
from condense_once.condensing.init import recipe_of_task
from condense_once.errors import BadFile
from condense_once.text import short_line


def build_distribution(recipe_for: RecipeFor, task: Task, saved: Mapping[str, Any] | None) -> DistributionCondenser:
    config = task.config
    recipe = recipe_of_task(recipe_for(task.source.train.shape, config.ipc, config.factor), task)
    if saved is None:
        return DistributionCondenser(task, recipe)
    try:
        before = DistributionRecipe(**saved)
    except (AttributeError, OverflowError, TypeError, ValueError) as error:  # values of other types, or impossible ones
        raise BadFile(f"its recipe is invalid ({short_line(error)}).") from None
    now = before.override({name: value for name, value in config.overrides.items() if name in RESUME_WITH})
    return DistributionCondenser(task, now, max_iterations=recipe.iterations)
