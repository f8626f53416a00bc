"""From a task to a condenser, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condense_once.condensing.condenser import Task
from condense_once.condensing.init import recipe_of_task
from condense_once.condensing.kernel.loop import KernelCondenser
from condense_once.condensing.kernel.method import RESUME_WITH, kip
from condense_once.condensing.kernel.recipe import KernelRecipe
from condense_once.condensing.recipe_fields import saved_recipe
from condense_once.errors import BadOption


def build_kernel(task: Task, saved: Mapping[str, Any] | None) -> KernelCondenser:
    config = task.config
    if task.world.size > 1:
        raise BadOption(
            "kip runs in one process, because every step solves one system for the images of all classes; start it without"
            " torchrun. It uses all cores."
        )
    recipe = recipe_of_task(kip(task.source.train.shape, config.ipc, config.factor), task)
    if recipe.space == "zca" and (config.factor > 1 or config.init is not None):
        raise BadOption(
            "A run in ZCA space has whole images, initialised from real ones; leave out `factor` and `init`, or override space"
            " with normalised."
        )
    if config.nested and recipe.label_lr:
        raise BadOption(
            "The images of a nested set keep their classes, so their labels are not learned; override label_lr with 0."
        )
    if saved is None:
        return KernelCondenser(task, recipe)
    before = saved_recipe(KernelRecipe, saved)
    now = before.override({name: value for name, value in config.overrides.items() if name in RESUME_WITH})
    return KernelCondenser(task, now, max_iterations=recipe.iterations)
