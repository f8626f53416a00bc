"""A request on this machine: checked and filled in, with the parts that it takes; nothing of it has begun."""

from __future__ import annotations

from torch import Tensor

from condense_once.condensing.config import Request
from condense_once.condensing.matching.class_step import Matcher
from condense_once.condensing.matching.decode import matched_patches
from condense_once.condensing.matching.init import check_start, images_of, starting_images
from condense_once.condensing.matching.network import Learner
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.matching.time_budget import Times, fit
from condense_once.condensing.problem import Problem
from condense_once.condensing.timetable import timetable
from condense_once.data.source import Source
from condense_once.nets import default_net, narrow_net
from condense_once.train.hardware import PASS, ComputeConfig, how_compiled
from condense_once.train.seeds import generator

A_MINUTE = 1000  # passes of images through ConvNet-D3 are at least made in a minute: to know what is worth compiling


class Job:
    """What is to be made, by which recipe and network."""

    def __init__(self, source: Source, request: Request, compute: ComputeConfig, processes: int = 1) -> None:
        self.request, self._compute, self._processes = request, compute, processes
        self.problem = Problem(source, request.ipc, request.factor, request.seed)
        self.recipe = request.recipe(self.problem)  # as asked for; minutes may cut it
        self.problem.check(self.recipe)
        if request.start is not None:
            check_start(request.start, self.problem)
        self.net = request.net or self._usual_net()
        self.described = {**request.described(source, self.net), "precision": compute.computed_in}

    def make_parts(self, recipe: MatchingRecipe) -> tuple[Learner, Matcher]:
        """For a run by this recipe, which may have other lengths and rates than what was asked for."""
        problem, compute = self.problem, self._compute
        lessons, steps = self._passes()
        space = problem.space(recipe)
        learner = Learner(self.net, problem.shape, problem.classes, recipe, space, passes=lessons, compute=compute)
        compiled = how_compiled(compute.compilation, learner.device, learner.dtype, steps * learner.work / PASS)
        return learner, Matcher(learner, problem, recipe, compiled)

    def fitted(self, times: Times, seconds: float) -> tuple[MatchingRecipe, str]:
        """The recipe for the time there is, and a sentence that says how it was cut."""
        return fit(self.recipe, self.problem, times, max(seconds, 0.0), self._processes, set(self.request.changes))

    def first_images(self, recipe: MatchingRecipe, learner: Learner) -> Tensor:
        """Where a run by this recipe begins, `[C, ipc, ch, h, w]`."""
        if self.request.start is not None:
            return images_of(self.request.start, self.problem, recipe).to(learner.device)
        learner.start(generator(self.problem.seed, "start"))
        return starting_images(self.problem, recipe, learner.net, learner.device)

    @property
    def images_a_step(self) -> int:
        """Real and synthetic ones, of one class."""
        recipe = self.recipe
        return recipe.real_batch + min(recipe.patches, matched_patches(self.problem, recipe))

    def _usual_net(self) -> str:
        """Half as wide where minutes are counted and the processor is slow: more steps do more than width."""
        in_haste = self.request.minutes is not None and self._compute.device == "cpu"
        return (narrow_net if in_haste else default_net)(self.problem.shape)

    def _passes(self) -> tuple[int, int]:
        """Images that go through the network in lessons and in steps: by what was asked for, never by the clock."""
        if self.request.minutes is not None:
            some = round(self.request.minutes * A_MINUTE)
            return some if self.recipe.lessons != "none" else 0, some
        recipe, table = self.recipe, timetable(self.problem, self.recipe)
        lessons = recipe.iterations * (table.early + (recipe.steps - 1) * table.lesson) * recipe.net_batch
        steps = recipe.iterations * recipe.steps * table.classes // self._processes
        return lessons, steps * self.images_a_step
