"""From a task to a condenser, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condense_once.condensing.condenser import Task
from condense_once.condensing.init import recipe_of_task
from condense_once.condensing.mtt.loop import MttCondenser
from condense_once.condensing.mtt.method import RESUME_WITH, mtt
from condense_once.condensing.mtt.recipe import MttRecipe
from condense_once.condensing.recipe_fields import saved_recipe
from condense_once.errors import BadOption


def build_mtt(task: Task, saved: Mapping[str, Any] | None) -> MttCondenser:
    config = task.config
    if task.world.size > 1:
        raise BadOption(
            "mtt runs in one process, because every step of a student trains on the images of all classes; start it without"
            " torchrun. It uses all cores."
        )
    recipe = recipe_of_task(mtt(task.source.train.shape, config.ipc, config.factor), task)
    if recipe.space == "zca" and config.init is not None:
        raise BadOption(
            "A run in ZCA space starts from real images or noise; leave out `init`, or override space with normalised."
        )
    if saved is None:
        return MttCondenser(task, recipe)
    before = saved_recipe(MttRecipe, saved)
    now = before.override({name: value for name, value in config.overrides.items() if name in RESUME_WITH})
    return MttCondenser(task, now, max_iterations=recipe.iterations)
