"""Fit kernel regression to a time budget: time a batch of real images, a step and a network update, then choose iterations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from condense_once.condensing.condenser import CondenseEstimate
from condense_once.condensing.item_timing import MEASURE_SHARE, sample_times
from condense_once.condensing.kernel.recipe import KernelRecipe
from condense_once.condensing.peak_memory import peak_memory
from condense_once.condensing.too_short import refuse_too_short
from condense_once.text import human_time, plural

if TYPE_CHECKING:
    from condense_once.condensing.kernel.loop import KernelCondenser

# A shortened run: the real images serve several steps, fewer networks learn faster, and images move far. A small ridge would let
# the first images interpolate: their predictions in untrained features are then worse than none.
LEAN: dict[str, Any] = {
    "steps": 4,
    "real_batch": 256,
    "image_lr": 0.05,
    "final_lr": 0.05,
    "ridge": 1.0,
    "networks": 5,
    "net_steps": 2,
    "augmentation": "color_crop_cutout",
}
PIXEL_SCALE = 0.25  # of pixels, against normalised values
LABEL_SCALE = 0.1  # of the learning rate of labels, against that of images


@dataclass(frozen=True)
class ItemTimes:
    """Seconds of each kind of work."""

    sample: float  # features of real images
    step: float
    network: float  # its updates after an iteration

    def iteration(self, recipe: KernelRecipe) -> float:
        return self.sample + recipe.steps * self.step + self.network


def fit_recipe(condenser: KernelCondenser, seconds: float) -> tuple[KernelRecipe, str]:
    """The recipe shortened to so many seconds, and a sentence that says how."""
    recipe, fixed = condenser.recipe, condenser.task.config.overrides
    if not recipe.iterations:
        return recipe, ""
    start = time.perf_counter()
    lean = replace(recipe, **{name: value for name, value in LEAN.items() if name not in fixed})
    if lean.label_lr and "label_lr" not in fixed:
        lean = replace(lean, label_lr=LABEL_SCALE * lean.image_lr)
    if lean.space == "pixels" and "image_lr" not in fixed:
        lean = replace(lean, image_lr=PIXEL_SCALE * lean.image_lr)
    times = measure(condenser, lean, start + MEASURE_SHARE * seconds)
    left = seconds - (time.perf_counter() - start)
    refuse_too_short(condenser.task, times.sample + times.step, left)
    cut = replace(lean, iterations=min(max(1, int(left / times.iteration(lean))), recipe.iterations))
    kernel = "features of networks" if cut.kernel == "features" else f"the {cut.kernel.upper()} of depth {cut.depth}"
    return cut, (
        f"{cut.method} for {human_time(seconds)}: {plural(cut.iterations, 'batch')} of"
        f" {plural(cut.real_batch, 'real image')}, {plural(cut.steps, 'step')} with each, by {kernel}."
    )


def measure(condenser: KernelCondenser, recipe: KernelRecipe, deadline: float = math.inf) -> ItemTimes:
    """Time each kind of work on the real images, once it is warm; nothing of it is kept."""

    def seconds(work: Callable[[], object]) -> float:
        return median(sample_times(work, deadline=deadline, compiles=True))

    twin = condenser.twin(
        replace(recipe, iterations=1, init="first" if recipe.init == "representatives" else recipe.init)
    )
    twin.initialise()
    sample = seconds(lambda: twin.sample(0))
    now = twin.sample(0)
    return ItemTimes(sample, seconds(lambda: twin.step(now)), seconds(lambda: twin.update_network(0)))


def estimate(condenser: KernelCondenser) -> CondenseEstimate:
    recipe = condenser.recipe
    times = measure(condenser, recipe)
    return CondenseEstimate(
        seconds=recipe.iterations * times.iteration(recipe),
        bytes=peak_memory(),
        iterations=recipe.iterations,
        steps=recipe.steps,
        step_seconds=times.step / len(condenser.images),
    )
