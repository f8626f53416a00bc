"""The matching loop: networks come and go, and each moves the images of every class a number of times.

Its work is a row of small ticks: a step of one class, or one batch that the network learns from. How many ticks are done
is the whole position; every draw is a function of the seed and the position. So a checkpoint holds the images and the
network, but no random state, and the loop can be stopped after any tick.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.augment import Augmentation, SingleAugmentation
from condense_once.condensing.descent import descend
from condense_once.condensing.distributed import Shard
from condense_once.condensing.matching.class_step import Matcher
from condense_once.condensing.matching.decode import matched_patches
from condense_once.condensing.matching.init import typical_rows
from condense_once.condensing.matching.network import Learner
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.problem import Normaliser, Problem
from condense_once.condensing.sampling import Shuffled
from condense_once.condensing.timetable import Tick, synthetic_batches, timetable
from condense_once.errors import BadOption
from condense_once.train.seeds import generator
from condense_once.train.trainer import split_rows

CALIBRATION = 16  # real images per class that batch norm counts by, as in DC
MEETING = 32  # batches of early lessons between two meetings


class MatchingLoop:
    """The images of all classes on their way, and the network they are looked at with."""

    def __init__(
        self,
        problem: Problem,
        recipe: MatchingRecipe,
        learner: Learner,
        matcher: Matcher,
        images: Tensor,
        shard: Shard | None = None,
    ) -> None:
        self.problem, self.recipe, self.images = problem, recipe, images  # images: [C, ipc, ch, h, w]
        self.learner, self.matcher, self.shard = learner, matcher, shard or Shard()
        self.velocity = torch.zeros_like(images)
        self.done = 0
        self.table = timetable(problem, recipe)
        self._batches = [
            Shuffled(rows, recipe.real_batch, problem.seed, "real", label) for label, rows in enumerate(problem.rows)
        ]
        everything = np.arange(len(problem.source.train.labels))
        self._lessons = Shuffled(everything, recipe.net_batch, problem.seed, "lessons")
        self._values = Normaliser(problem.space(recipe), learner.device)
        reading = SingleAugmentation if recipe.one_change else Augmentation
        self._changes = reading.parse(recipe.augmentation)
        self._kept: dict[int, NDArray[np.int64]] = {}  # typical rows of each class, as chosen last

    @property
    def finished(self) -> bool:
        return self.done >= self.table.total

    @property
    def meets(self) -> bool:
        """Whether it is at a place where processes meet: before a step, and now and then in early lessons."""
        tick = self.table.at(self.done)
        first = tick.number % MEETING == 0 if tick.kind == "early" else tick.number == 0
        return self.finished or (first and tick.kind != "lesson")

    @property
    def between_networks(self) -> bool:
        return self.done % self.table.per_iteration == 0

    def advance(self) -> float | None:
        """Do the next tick; the loss if it was a step of a class of ours."""
        tick = self.table.at(self.done)
        if self.between_networks:
            self._new_network(tick.iteration)
        loss = None
        match tick.kind:
            case "early":
                self._early_lesson(tick)
            case "class":
                loss = self._class_turn(tick)
            case "lesson":
                self._lesson(tick)
        self.done += 1
        return loss

    def mosaics(self) -> NDArray[np.float32]:
        """The images as they are, `[C·ipc, ch, h, w]`; pixels are kept in 0…1."""
        images = self.images.clamp(0, 1) if self.recipe.space == "pixels" else self.images
        return images.flatten(0, 1).cpu().numpy()

    def gather(self) -> None:
        """Let every process have the images of all classes."""
        self.shard.gather(self.images)
        self.shard.gather(self.velocity)
        if self.recipe.keep_batch:
            self._kept = self.shard.gather_rows(self._kept, self.table.classes, self._most_kept)

    @property
    def is_sound(self) -> bool:
        """Whether all that a later process would go on from is a number."""
        values = (self.images, self.velocity, *self.learner.net.state_dict().values())
        return all(bool(torch.isfinite(tensor).all()) for tensor in values)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that a later process needs beside the number of ticks done."""
        kept = {f"kept/{label}": rows.astype(np.uint32) for label, rows in self._kept.items()}
        images = {"images": self.images.cpu().numpy(), "velocity": self.velocity.cpu().numpy()}
        return {**images, **self.learner.arrays(), **kept}

    def restore(self, arrays: Mapping[str, NDArray[Any]], done: int) -> None:
        """Go on where `arrays` were taken."""
        self.images.copy_(torch.from_numpy(arrays["images"].copy()))
        self.velocity.copy_(torch.from_numpy(arrays["velocity"].copy()))
        self.learner.restore(arrays)
        self._kept = {
            int(name.removeprefix("kept/")): rows.astype(np.int64)
            for name, rows in arrays.items()
            if name.startswith("kept/")
        }
        self.done = done

    @cached_property
    def _most_kept(self) -> int:
        return min(self.recipe.real_batch, max(map(len, self.problem.rows)))

    def _new_network(self, iteration: int) -> None:
        self.learner.start(generator(self.problem.seed, "network", iteration))
        if self.recipe.space == "pixels":
            self.images.clamp_(0, 1)  # now and then, not after every step, as IDC does

    def _class_turn(self, tick: Tick) -> float | None:
        if tick.number == 0:
            self._settle(tick)
        return self._class_step(tick) if self.shard.owns(tick.number) else None

    def _class_step(self, tick: Tick) -> float:
        problem, recipe, device = self.problem, self.recipe, self.learner.device
        label, number = tick.number, self.table.steps_before(tick)
        real = problem.pixels(self._real_rows(tick), device)
        draws = generator(problem.seed, "step", label, number)
        rows = self._looked_at(draws)
        drawn = self._changes.sample_shared(problem.shape[1:], draws)
        loss, gradient = self.matcher(self.images[label], real, torch.tensor(label, device=device), rows, drawn)
        value = float(loss)
        if not math.isfinite(value) or not bool(torch.isfinite(gradient).all()):
            raise BadOption(
                f"The loss of class {problem.source.classes[label]!r} is NaN or infinite (network {tick.iteration + 1},"
                f" step {tick.step + 1}); go on from the last checkpoint, or begin anew, with a smaller rate of the images or"
                f" of the network (--resume --set rate=…, now {recipe.rate:g}, or net_rate=…, now {recipe.net_rate:g})."
            )
        others = self.table.classes - 1 if recipe.glide else 0
        descend(
            self.images[label],
            self.velocity[label],
            gradient,
            rate=recipe.rate,
            momentum=recipe.momentum,
            idle=others,
        )
        return value

    def _real_rows(self, tick: Tick) -> NDArray[np.int64]:
        recipe, label, number = self.recipe, tick.number, self.table.steps_before(tick)
        if not recipe.keep_batch:
            return self._batches[label][number]
        if tick.step % recipe.keep_batch == 0 or label not in self._kept:
            self._kept[label] = typical_rows(
                self.problem, recipe, label, recipe.real_batch, self.learner.net, self.learner.device, when=number
            )
        return self._kept[label]

    def _looked_at(self, draws: torch.Generator) -> Tensor:
        """The patches of a class that a step looks at: all, or as many as the recipe allows."""
        patches = matched_patches(self.problem, self.recipe)
        drawn = torch.randperm(patches, generator=draws)[: self.recipe.patches].sort().values
        return drawn.to(self.learner.device)

    def _early_lesson(self, tick: Tick) -> None:
        self._real_lesson(tick.iteration * self.table.early + tick.number, "early", tick.iteration)
        if tick.number == self.table.early - 1:
            self.shard.agree(self.learner.net)

    def _lesson(self, tick: Tick) -> None:
        if self.recipe.lessons == "real":
            before = tick.iteration * (self.recipe.steps - 1) + tick.step
            batch = before * self.table.lesson + tick.number
            self._real_lesson(batch, "lesson", tick.iteration, tick.step, tick.number)
        else:
            self._synthetic_lesson(tick)
        if tick.number == self.table.lesson - 1:
            self.shard.agree(self.learner.net)

    def _real_lesson(self, number: int, *purpose: str | int) -> None:
        rows = self._lessons[number]
        device = self.learner.device
        labels = torch.from_numpy(np.asarray(self.problem.source.train.labels)[rows]).to(device)
        x = self._values.normalise(self.problem.pixels(rows, device))
        self.learner.learn(x, labels, generator(self.problem.seed, *purpose, number))

    def _synthetic_lesson(self, tick: Tick) -> None:
        if tick.number == 0:
            self.shard.gather(self.images)
        epoch, place = divmod(tick.number, synthetic_batches(self.problem, self.recipe))
        where = (tick.iteration, tick.step, epoch)
        each = self.problem.patches_per_class
        order = torch.randperm(self.table.classes * each, generator=generator(self.problem.seed, "order", *where))
        rows = split_rows(order, self.recipe.net_batch)[place]
        with torch.no_grad():
            x = self._some_patches(rows)
        labels = (rows // each).to(self.learner.device)
        self.learner.learn(x, labels, generator(self.problem.seed, "lesson", *where, place))

    def _some_patches(self, rows: Tensor) -> Tensor:
        """Patches by their numbers in the whole set; only the classes they are of are decoded."""
        each = self.problem.patches_per_class
        labels = torch.from_numpy(np.unique(rows.numpy() // each))
        decoded = torch.cat([self.matcher.all_patches(self.images[label]) for label in labels.tolist()])
        places = torch.searchsorted(labels, rows // each) * each + rows % each
        return decoded[places.to(decoded.device)]

    def _settle(self, tick: Tick) -> None:
        if self.learner.has_batch_norm:
            number = self.table.steps_before(tick)
            rows = np.concatenate(
                [
                    Shuffled(rows, CALIBRATION, self.problem.seed, "statistics", label)[number]
                    for label, rows in enumerate(self.problem.rows)
                ]
            )
            pixels = self.problem.pixels(rows, self.learner.device)
            draws = generator(self.problem.seed, "statistics", number)
            self.learner.settle_statistics(self._values.normalise(pixels), draws)
