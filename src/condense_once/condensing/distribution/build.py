"""From a method's recipe and a task to a condenser, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condense_once.condensing.condenser import Task
from condense_once.condensing.distribution.loop import DistributionCondenser
from condense_once.condensing.distribution.method import RESUME_WITH, RecipeFor
from condense_once.condensing.distribution.recipe import DistributionRecipe
from condense_once.condensing.init import recipe_of_task
from condense_once.condensing.recipe_fields import saved_recipe


def build_distribution(recipe_for: RecipeFor, task: Task, saved: Mapping[str, Any] | None) -> DistributionCondenser:
    config = task.config
    recipe = recipe_of_task(recipe_for(task.source.train.shape, config.ipc, config.factor), task)
    if saved is None:
        return DistributionCondenser(task, recipe)
    before = saved_recipe(DistributionRecipe, saved)
    now = before.override({name: value for name, value in config.overrides.items() if name in RESUME_WITH})
    return DistributionCondenser(task, now, max_iterations=recipe.iterations)
