"""From a method's recipe and a task to a matching condenser, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condense_once.condensed.space import Space
from condense_once.condensing.condenser import Task
from condense_once.condensing.init import recipe_of_task
from condense_once.condensing.matching.class_step import ClassStep
from condense_once.condensing.matching.loop import MatchingCondenser, images_per_step
from condense_once.condensing.matching.method import LEARNING_RATES, RecipeFor
from condense_once.condensing.matching.network import MatchingNetwork
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.matching.schedule import make_schedule
from condense_once.condensing.real_images import Normaliser
from condense_once.condensing.recipe_fields import saved_recipe
from condense_once.errors import BadOption
from condense_once.train.hardware import PASS, how_compiled
from condense_once.train.images import DataSpec

PASSES_PER_MINUTE = 1000  # of images through ConvNet-D3, at least: to decide under a time budget whether compiling pays


def build_matching(recipe_for: RecipeFor, task: Task, saved: Mapping[str, Any] | None) -> MatchingCondenser:
    config = task.config
    recipe = recipe_of_task(recipe_for(task.source.train.shape, config.ipc, config.factor), task)
    if (config.nested or recipe.subset_period) and recipe.decode == "bound":
        raise BadOption(
            "A set whose first images are matched on their own (`nested`, mdc) needs the recipe's decode to be single: bound"
            " decodes later images otherwise."
        )
    if saved is None:
        return MatchingCondenser(task, recipe, *_parts(task, recipe, recipe))
    before = saved_recipe(MatchingRecipe, saved)
    now = before.override({name: value for name, value in config.overrides.items() if name in LEARNING_RATES})
    # A network trained at another rate may have diverged, so it is trained again.
    return MatchingCondenser(
        task, now, *_parts(task, now, recipe), max_iterations=recipe.iterations, restart_network=now != before
    )


def _parts(task: Task, recipe: MatchingRecipe, asked: MatchingRecipe) -> tuple[MatchingNetwork, ClassStep]:
    """The network and the class step; whether they are compiled depends on the recipe asked for, not on measured time."""
    source, config, compute = task.source, task.config, task.compute
    shape, classes = source.train.shape, len(source.classes)
    data = DataSpec(shape, classes, Space(recipe.space, source.mean, source.std))
    net_passes, step_passes = _passes(task, asked)
    network = MatchingNetwork(config.net, data, recipe, passes=net_passes, compute=compute)
    work = step_passes * network.multiply_adds / PASS
    compiled = how_compiled(compute.compilation, network.device, network.dtype, work)
    normalise = Normaliser(source, network.device)
    return network, ClassStep(network, recipe, normalise, shape, config.factor, compiled)


def _passes(task: Task, recipe: MatchingRecipe) -> tuple[int, int]:
    """Images that pass through the network in network updates and in class steps."""
    config, classes = task.config, len(task.source.classes)
    if config.minutes is not None:
        some = round(config.minutes * PASSES_PER_MINUTE)
        return some if recipe.net_data != "none" else 0, some
    patches = classes * config.patches_per_class
    schedule = make_schedule(recipe, images=len(task.source.train.labels), classes=classes, patches=patches)
    updates = recipe.iterations * (schedule.pretrain + (recipe.steps - 1) * schedule.net_update)
    steps = recipe.iterations * recipe.steps * classes // task.world.size
    return updates * recipe.net_batch, steps * images_per_step(config, recipe)
