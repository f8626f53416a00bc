"""Fit trajectory matching to a time budget: time an expert's batch and a student, then choose epochs and iterations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from condense_once.condensing.condenser import CondenseEstimate
from condense_once.condensing.item_timing import MEASURE_SHARE, REPEATS, sample_times
from condense_once.condensing.mtt.recipe import MttRecipe
from condense_once.condensing.peak_memory import peak_memory
from condense_once.condensing.too_short import refuse_too_short
from condense_once.nets import is_large
from condense_once.text import human_time, plural

if TYPE_CHECKING:
    from condense_once.condensing.mtt.loop import MttCondenser

# A shortened run: one expert, whose next epoch students reach in a few large steps on some of the patches.
LEAN: dict[str, Any] = {
    "experts": 1,
    "expert_every": 1,
    "ahead": 1,
    "max_start": 20,
    "student_steps": 10,
    "student_batch": 50,
    "student_lr": 0.02,
    "lr_lr": 1e-5,
    "final_lr": 0.1,
}
# Of the images, per patch of a step: the gradient of each is that of a mean.
LEAN_LR = {"normalised": 200.0, "zca": 200.0, "pixels": 8.0}
# Few lengths, so that runs of other budgets share their experts.
EXPERT_EPOCHS = (20, 15, 10, 7, 5, 3, 2, 1)
SHORT_EPOCHS = 8  # of an expert that is trained on a part of the images, because an epoch takes too long …
SHORT_LR = 0.05  # … and that would hardly leave its random weights at MTT's learning rate
EXPERT_SHARE = 0.4  # of the time budget goes to training the expert, at most


@dataclass(frozen=True)
class ItemTimes:
    """Seconds of each kind of work."""

    expert_batch: float
    student: float

    def experts(self, condenser: MttCondenser, recipe: MttRecipe) -> float:
        """Seconds of the training that is left to do for this recipe."""
        return condenser.make_experts(recipe).missing * self.expert_batch


def fit_recipe(condenser: MttCondenser, seconds: float) -> tuple[MttRecipe, str]:
    """The recipe shortened to so many seconds, and a sentence that says how."""
    recipe = condenser.recipe
    if not recipe.iterations:
        return recipe, ""
    start = time.perf_counter()
    options = _options(condenser)
    times = measure(condenser, options[-1], start + MEASURE_SHARE * seconds)
    return shorten(condenser, options, times, seconds - (time.perf_counter() - start))


def shorten(
    condenser: MttCondenser, options: list[MttRecipe], times: ItemTimes, seconds: float
) -> tuple[MttRecipe, str]:
    """Choose the longest expert that takes its share at most, or that exists already; the rest of the time is for students."""
    costs = {option: times.experts(condenser, option) for option in options}
    chosen = next((option for option in options if costs[option] <= EXPERT_SHARE * seconds), options[-1])
    refuse_too_short(
        condenser.task, costs[chosen] + times.student, seconds, "Training an expert, with a first student,"
    )
    left = seconds - costs[chosen]
    cut = replace(chosen, iterations=min(max(1, int(left / times.student)), condenser.recipe.iterations))
    training = f"trained first, in about {human_time(costs[chosen])}" if costs[chosen] else "found on disk"
    batches = f" of {plural(cut.expert_batches, 'batch')}" if cut.expert_batches else ""
    return cut, (
        f"{cut.method} for {human_time(seconds)}: {plural(cut.experts, 'expert')} of"
        f" {plural(cut.expert_epochs, 'epoch')}{batches} ({training}; kept in {condenser.make_experts(cut).folder}), then"
        f" {plural(cut.iterations, 'student')} of {plural(cut.student_steps, 'step')}."
    )


def _options(condenser: MttCondenser) -> list[MttRecipe]:
    """Recipes of a shortened run, the longest experts first; the user's own length if there is one."""
    recipe, fixed = condenser.recipe, condenser.task.config.overrides
    lean = {**LEAN, "recompute": is_large(condenser.real.shape)}
    short = replace(recipe, **{name: value for name, value in lean.items() if name not in fixed})
    if "image_lr" not in fixed:
        short = replace(short, image_lr=LEAN_LR[recipe.space] * condenser.patches_of_step(short))
    if {"expert_epochs", "expert_batches"} & set(fixed):
        return [short]
    every, least = short.expert_every, short.ahead * short.expert_every  # epochs, for one student to follow
    batches = condenser.make_experts(replace(short, experts=1, expert_epochs=least)).items // least  # of an epoch
    halved = ((SHORT_EPOCHS, batches // SHORT_EPOCHS >> halvings) for halvings in range(batches.bit_length()))
    lengths = [*((epochs, 0) for epochs in EXPERT_EPOCHS), *(each for each in halved if each[1])]
    lr = short.expert_lr if "expert_lr" in fixed else SHORT_LR
    return [
        replace(short, expert_epochs=epochs, expert_batches=part, expert_lr=lr if part else short.expert_lr)
        for epochs, part in lengths
        if epochs % every == 0 and epochs >= least
    ] or [short]


def measure(condenser: MttCondenser, recipe: MttRecipe, deadline: float = math.inf) -> ItemTimes:
    """Time each kind of work on the real images, once it is warm; nothing of it is kept."""

    def seconds(work: Callable[[], object]) -> float:
        return median(sample_times(work, deadline=deadline, compiles=True))

    longer = replace(recipe, experts=1, expert_epochs=(REPEATS + 1) * recipe.expert_epochs)  # than is measured
    expert = condenser.make_experts(longer, writes=False)
    expert.start()
    batch = seconds(expert.advance)
    twin = condenser.twin(recipe)
    student = twin.trial_student()
    return ItemTimes(batch, seconds(lambda: twin.gradients(student)))


def estimate(condenser: MttCondenser) -> CondenseEstimate:
    recipe = condenser.recipe
    times = measure(condenser, recipe)
    return CondenseEstimate(
        seconds=times.experts(condenser, recipe) + recipe.iterations * times.student,
        bytes=peak_memory(),
        iterations=recipe.iterations,
        steps=1,
        step_seconds=times.student / len(condenser.images),
    )
