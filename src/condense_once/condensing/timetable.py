"""The order of a run's work: which tick follows which, as arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.problem import Problem
from condense_once.train.trainer import split_rows


@dataclass(frozen=True)
class Tick:
    """One piece of work. A network's are early lessons, then for each step all classes and a lesson."""

    iteration: int  # which network
    step: int  # the one it belongs to; early lessons to the first
    kind: Literal["early", "class", "lesson"]
    number: int  # of the class, or of the batch in its lessons


@dataclass(frozen=True)
class Timetable:
    """How the ticks of a recipe follow each other."""

    iterations: int
    early: int
    steps: int
    classes: int
    lesson: int  # batches; there is none after a network's last step, for nobody would look at it again
    pool: int = 0  # real images of a class among which typical ones are looked for, on average

    @property
    def per_iteration(self) -> int:
        return self.early + self.steps * (self.classes + self.lesson) - self.lesson

    @property
    def total(self) -> int:
        return self.iterations * self.per_iteration

    def at(self, done: int) -> Tick:
        """What comes after so many ticks.

        >>> table = Timetable(iterations=2, early=1, steps=2, classes=3, lesson=2)
        >>> table.total, table.at(4), table.at(9).kind
        (18, Tick(iteration=0, step=0, kind='lesson', number=0), 'early')
        """
        iteration, rest = divmod(done, self.per_iteration)
        if rest < self.early:
            return Tick(iteration, 0, "early", rest)
        step, place = divmod(rest - self.early, self.classes + self.lesson)
        if place < self.classes:
            return Tick(iteration, step, "class", place)
        return Tick(iteration, step, "lesson", place - self.classes)

    def steps_before(self, tick: Tick) -> int:
        """Steps of every class that are done when it comes."""
        return tick.iteration * self.steps + tick.step


def timetable(problem: Problem, recipe: MatchingRecipe) -> Timetable:
    images = len(problem.source.train.labels)
    lesson = {
        "real": -(-recipe.lesson_images // recipe.net_batch),
        "synthetic": recipe.lesson_epochs * synthetic_batches(problem, recipe),
        "none": 0,
    }[recipe.lessons]
    return Timetable(
        iterations=recipe.iterations,
        early=recipe.early * max(1, images // recipe.net_batch),
        steps=recipe.steps,
        classes=problem.classes,
        lesson=lesson,
        pool=min(recipe.pool or images, -(-images // problem.classes)),
    )


def synthetic_batches(problem: Problem, recipe: MatchingRecipe) -> int:
    """Batches in one pass of the network through all patches."""
    patches = torch.arange(problem.classes * problem.patches_per_class)
    return len(split_rows(patches, recipe.net_batch))
