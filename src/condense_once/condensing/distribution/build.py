"""From a method's recipe and a task to a condenser, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condense_once.condensing.condenser import Task
from condense_once.condensing.distribution.loop import DistributionCondenser
from condense_once.condensing.distribution.method import RESUME_WITH, RecipeFor
from condense_once.condensing.distribution.recipe import DistributionRecipe
from condense_once.condensing.init import check_init
from condense_once.errors import BadFile, BadOption


def build_distribution(recipe_for: RecipeFor, task: Task, saved: Mapping[str, Any] | None) -> DistributionCondenser:
    config, shape = task.config, task.source.train.shape
    recipe = recipe_for(shape, config.ipc, config.factor)
    recipe = recipe.override(config.preset_overrides(shape)).override(config.overrides)
    if config.init is not None:
        recipe = recipe.override({"init": "given"})
    elif recipe.init == "given":
        raise BadOption("The recipe's init is 'given', but there is no such set; pass one as `init`.")
    check_init(task.source, config, recipe.init)
    if saved is None:
        return DistributionCondenser(task, recipe)
    try:
        before = DistributionRecipe(**saved)
    except (TypeError, BadOption) as error:
        raise BadFile(f"its recipe is invalid ({error}).") from None
    now = before.override({name: value for name, value in config.overrides.items() if name in RESUME_WITH})
    return DistributionCondenser(task, now, max_iterations=recipe.iterations)
