"""Fit distribution matching to a time budget: time an expert's batch and a step, then choose epochs and iterations."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from condense_once.condensing.condenser import CondenseEstimate
from condense_once.condensing.distribution.recipe import DistributionRecipe
from condense_once.condensing.item_timing import MEASURE_SHARE, REPEATS, sample_times
from condense_once.condensing.peak_memory import peak_memory
from condense_once.condensing.too_short import refuse_too_short
from condense_once.text import human_time, plural

if TYPE_CHECKING:
    from condense_once.condensing.distribution.loop import DistributionCondenser

# A shortened run: one expert serves nearly as well as five, the network of the cross-entropy is the one that is matched in, and
# the mean features of the real images serve several steps. Measured in results/README.md.
LEAN: dict[str, Any] = {"experts": 1, "ahead": 0, "steps": 4, "real_batch": 64, "image_lr": 0.2, "final_lr": 0.05}
# Few lengths, so that runs of other budgets share their experts.
EXPERT_EPOCHS = (60, 40, 30, 20, 15, 10, 7, 5, 3, 2, 1)
SHORT_EPOCHS = (
    8  # and as many snapshots, of an expert that is trained on a part of the images because an epoch takes too long
)
MAX_EPOCHS = 20  # of an expert trained for a shortened run
EXPERT_SHARE = 0.4  # of the time budget goes to training the expert, at most


@dataclass(frozen=True)
class ItemTimes:
    """Seconds of each kind of work."""

    expert_batch: float
    sample: float  # a snapshot and the mean features of real images
    step: float

    def matching(self, recipe: DistributionRecipe) -> float:
        """Seconds of one iteration."""
        return self.sample + recipe.steps * self.step

    def experts(self, condenser: DistributionCondenser, recipe: DistributionRecipe) -> float:
        """Seconds of the training that is left to do for this recipe."""
        return condenser.make_experts(recipe).missing * self.expert_batch


def fit_recipe(condenser: DistributionCondenser, seconds: float) -> tuple[DistributionRecipe, str]:
    """The recipe shortened to so many seconds, and a sentence that says how; rank 0 decides for all processes."""
    recipe, decision, world = condenser.recipe, "", condenser.task.world
    if world.is_primary and recipe.iterations:
        start = time.perf_counter()
        fixed = condenser.task.config.overrides
        lean = replace(recipe, **{name: value for name, value in LEAN.items() if name not in fixed})
        times = measure(condenser, lean, start + MEASURE_SHARE * seconds)
        recipe, decision = shorten(condenser, lean, times, seconds - (time.perf_counter() - start))
    return DistributionRecipe(**json.loads(world.broadcast_text(json.dumps(asdict(recipe))))), decision


def shorten(
    condenser: DistributionCondenser, lean: DistributionRecipe, times: ItemTimes, seconds: float
) -> tuple[DistributionRecipe, str]:
    """Choose the longest expert that takes its share at most, or that exists already; the rest of the time is for matching."""
    options = _expert_options(condenser, lean)
    costs = {option: times.experts(condenser, option) for option in options}
    chosen = next((each for each in options if not costs[each] or _affordable(each, costs[each], seconds)), options[-1])
    needed = costs[chosen] + times.matching(chosen)
    refuse_too_short(condenser.task, needed, seconds, "Training an expert, with a first step,")
    left = seconds - costs[chosen]
    cut = replace(chosen, iterations=min(max(1, int(left / times.matching(chosen))), condenser.recipe.iterations))
    training = f"trained first, in about {human_time(costs[chosen])}" if costs[chosen] else "found on disk"
    batches = f" of {plural(cut.expert_batches, 'batch')}" if cut.expert_batches else ""
    return cut, (
        f"{cut.method} for {human_time(seconds)}: an expert of {plural(cut.expert_epochs, 'epoch')}{batches} ({training}; kept in"
        f" {condenser.make_experts(cut).folder}), then {plural(cut.iterations, 'iteration')} of {plural(cut.steps, 'step')}."
    )


def _expert_options(condenser: DistributionCondenser, lean: DistributionRecipe) -> list[DistributionRecipe]:
    """Recipes with experts of all lengths, the longest first; the user's own length if there is one."""
    if {"expert_epochs", "expert_batches"} & set(condenser.task.config.overrides):
        return [lean]
    whole = [replace(lean, expert_epochs=epochs, expert_every=1) for epochs in EXPERT_EPOCHS]
    batches = condenser.make_experts(replace(whole[-1], experts=1)).items  # of one epoch
    return whole + [
        replace(whole[-1], expert_epochs=min(SHORT_EPOCHS, part), expert_batches=max(1, part // SHORT_EPOCHS))
        for part in (batches >> halvings for halvings in range(1, batches.bit_length()))
    ]


def _affordable(recipe: DistributionRecipe, cost: float, seconds: float) -> bool:
    return recipe.expert_epochs <= MAX_EPOCHS and cost <= EXPERT_SHARE * seconds


def measure(condenser: DistributionCondenser, recipe: DistributionRecipe, deadline: float = math.inf) -> ItemTimes:
    """Time each kind of work on the real images, once it is warm; nothing of it is kept."""

    def seconds(work: Callable[[], object]) -> float:
        return median(sample_times(work, deadline=deadline, compiles=True))

    whole = replace(recipe, nesting="prefixes")  # steps of the first stages take less time; the run is replanned later
    longer = REPEATS + 2  # epochs than are measured, so that the expert is not finished, and saved
    twin = condenser.twin(replace(whole, expert_epochs=longer, expert_every=1, experts=1))
    twin.experts.start()
    batch = seconds(twin.experts.advance)
    sample = seconds(lambda: twin.sample(0))
    now = twin.sample(0)
    return ItemTimes(batch, sample, seconds(lambda: twin.step(now)))


def estimate(condenser: DistributionCondenser) -> CondenseEstimate:
    recipe = condenser.recipe
    times = measure(condenser, recipe)
    seconds = times.experts(condenser, recipe) + recipe.iterations * times.matching(recipe)
    return CondenseEstimate(
        seconds=seconds,
        bytes=peak_memory(),
        iterations=recipe.iterations,
        steps=recipe.steps,
        step_seconds=times.step / len(condenser.images),
    )
