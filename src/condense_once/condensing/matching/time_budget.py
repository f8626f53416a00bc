"""A recipe for the time there is: what a step takes here is measured, and the loops are cut to fit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import torch

from condense_once.condensing.matching.class_step import Matcher
from condense_once.condensing.matching.init import typical_rows
from condense_once.condensing.matching.loop import MatchingLoop
from condense_once.condensing.matching.network import Learner
from condense_once.condensing.matching.recipe import Distance, MatchingRecipe
from condense_once.condensing.problem import Problem
from condense_once.condensing.timetable import Timetable, timetable
from condense_once.train.seeds import generator

LESSON_SHARE = 1 / 3  # of the time of the steps may go to lessons, when there is not time for everything
POOL = 1024  # real images of a class among which typical ones are looked for then
# By which the rate may grow, at most, when there are fewer steps to make use of it. For mse 20 was better than 4, 60 and 200
# (results/README.md); the others are guesses.
BOOST: dict[Distance, float] = {"mse": 20.0, "l1": 4.0, "cosine": 4.0, "features": 4.0}
REPEATS = 3  # of each measurement; the best counts
ENOUGH = 1.0  # second: what takes longer is not measured again


@dataclass(frozen=True)
class Times:
    """Seconds of each thing that a run is made of."""

    step: float  # of one class
    lesson: float  # one batch
    choice: float  # of typical images of a class, for each image among which they are looked for
    network: float  # drawing a new one

    def of(self, recipe: MatchingRecipe, table: Timetable, processes: int = 1) -> float:
        """The whole of a recipe, with the classes shared by so many processes."""
        turns = -(-table.classes // processes)
        choices = turns * -(-recipe.steps // recipe.keep_batch) if recipe.keep_batch else 0
        lessons = table.early + (recipe.steps - 1) * table.lesson
        chosen = choices * table.pool * self.choice
        each = self.network + recipe.steps * turns * self.step + chosen + lessons * self.lesson
        return self.start(recipe, table) + recipe.iterations * each

    def start(self, recipe: MatchingRecipe, table: Timetable) -> float:
        """Before the first network: every process chooses for all classes."""
        return table.classes * table.pool * self.choice if recipe.start == "representatives" else 0.0


def measure(
    problem: Problem, recipe: MatchingRecipe, learner: Learner, matcher: Matcher, repeats: int = REPEATS
) -> Times:
    """Time each part on the real thing, once it is warm; nothing of it is kept."""
    few, early = min(recipe.lesson_epochs, 1), min(recipe.early, 1)
    short = replace(recipe, iterations=1, steps=2, early=early, lesson_epochs=few, pool=POOL)
    images = torch.rand(problem.classes, problem.ipc, *problem.shape, generator=generator(0, "measure"))
    loop = MatchingLoop(problem, short, learner, matcher, images.to(learner.device))
    table = loop.table
    network = _best(lambda: learner.start(generator(0, "measure")), repeats)
    lesson = table.early + table.classes if table.lesson else table.early - 1
    some_class = min(1, table.classes - 1)  # with the first, batch norm counts for all of them
    return Times(
        step=_best(lambda: _tick(loop, table.early + table.classes + table.lesson + some_class), repeats),
        lesson=_best(lambda: _tick(loop, lesson), repeats) if table.lesson or table.early else 0.0,
        choice=_best(lambda: _choose(problem, short, learner), 1) / table.pool if _may_choose(recipe) else 0.0,
        network=network,
    )


def fit(
    recipe: MatchingRecipe,
    problem: Problem,
    times: Times,
    seconds: float,
    processes: int = 1,
    fixed: Collection[str] = (),
) -> tuple[MatchingRecipe, str]:
    """The recipe cut to so many seconds, and a sentence that says how; but for the number of networks, `fixed` fields stay.

    Lessons are shortened until they take a third of the time of the steps, early lessons are left out, and typical images
    are looked for among fewer; but if it starts from real images, then from typical ones. Of the steps that there is time
    for, as many are made with each network as there are networks, but no more than the recipe has. The rate grows with the
    square root of the steps that are missing, up to `BOOST`.
    """
    whole = times.of(recipe, timetable(problem, recipe), processes)
    if whole <= seconds or not recipe.iterations:
        return recipe, f"The whole recipe of {recipe.method} takes about {_minutes(whole)}; nothing is cut."

    def changed(base: MatchingRecipe, **fields: Any) -> MatchingRecipe:
        return replace(base, **{name: value for name, value in fields.items() if name not in fixed})

    lean = changed(recipe, **_lean(recipe, problem, times, processes))
    affordable = recipe.iterations * recipe.steps * seconds / times.of(lean, timetable(problem, lean), processes)
    one = replace(changed(lean, steps=min(recipe.steps, max(1, round(math.sqrt(affordable))))), iterations=1)
    table = timetable(problem, one)
    start = times.start(one, table)
    networks = int((seconds - start) / (times.of(one, table, processes) - start))
    cut = replace(one, iterations=min(max(1, networks), recipe.iterations))
    missing = recipe.iterations * recipe.steps / (cut.iterations * cut.steps)
    cut = changed(cut, rate=recipe.rate * min(BOOST[recipe.distance], math.sqrt(missing)))
    took = times.of(cut, timetable(problem, cut), processes)
    return cut, (
        f"{recipe.method} takes about {_minutes(whole)} here; for {_minutes(seconds)} it is cut to {cut.iterations} networks"
        f" with {cut.steps} steps per class each (of {recipe.iterations} with {recipe.steps}), {_lessons(cut)}{_start(cut)},"
        f" and the rate of the images is {cut.rate:.3g} (of {recipe.rate:g}): about {_minutes(took)}."
    )


def _lean(recipe: MatchingRecipe, problem: Problem, times: Times, processes: int) -> dict[str, Any]:
    """The fields of a recipe that does little but steps, and begins well."""
    table, turns = timetable(problem, recipe), -(-problem.classes // processes)
    lean: dict[str, Any] = {"early": 0}
    if recipe.start == "first":
        lean["start"] = "representatives"
    if recipe.keep_batch or "representatives" in (recipe.start, lean.get("start")):
        lean["pool"] = min(recipe.pool or POOL, POOL)
    if table.lesson:
        batches = max(1, int(LESSON_SHARE * turns * times.step / max(times.lesson, 1e-9)))
        share = min(1.0, batches / table.lesson)
        if recipe.lessons == "real":
            lean["lesson_images"] = max(recipe.net_batch, int(recipe.lesson_images * share))
        else:
            lean["lesson_epochs"] = max(1, int(recipe.lesson_epochs * share))
    return lean


def _may_choose(recipe: MatchingRecipe) -> bool:
    """Whether typical images may be looked for, at least at the start."""
    return bool(recipe.keep_batch) or recipe.start in ("first", "representatives")


def _choose(problem: Problem, recipe: MatchingRecipe, learner: Learner) -> None:
    count = recipe.real_batch if recipe.keep_batch else problem.patches_per_class
    typical_rows(problem, recipe, 0, count, learner.net, learner.device, when=0)


def _tick(loop: MatchingLoop, place: int) -> None:
    loop.done = place
    loop.advance()


def _best(work: Callable[[], None], repeats: int) -> float:
    work()  # warm: what is compiled is compiled now
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if best > ENOUGH:
            break
    return best


def _lessons(recipe: MatchingRecipe) -> str:
    if recipe.lessons == "real":
        return f"lessons of {recipe.lesson_images} real images"
    return f"lessons of {recipe.lesson_epochs} epochs" if recipe.lessons == "synthetic" else "no lessons"


def _start(recipe: MatchingRecipe) -> str:
    return ", a start from typical images" if recipe.start == "representatives" else ""


def _minutes(seconds: float) -> str:
    hours = seconds / 3600
    return f"{seconds / 60:.1f} minutes" if hours < 3 else f"{hours:,.0f} hours"
