"""The order of a matching run's work items, as arithmetic: their number is all that a checkpoint stores of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.train.batches import batches_per_epoch
from condense_once.train.trainer import split_rows


@dataclass(frozen=True)
class WorkItem:
    """An update of one class's images, or one batch of network training."""

    iteration: int  # which network
    step: int  # pretraining belongs to the first
    kind: Literal["pretrain", "class_step", "net_update"]
    number: int  # of the class, or of the batch


@dataclass(frozen=True)
class Schedule:
    """Each network is pretrained; then, for each step, all classes are updated and the network is trained.

    After the last step there is no network update, because no step would use it.
    """

    iterations: int
    pretrain: int  # batches
    steps: int
    classes: int
    net_update: int  # batches

    @property
    def per_iteration(self) -> int:
        return self.pretrain + self.steps * (self.classes + self.net_update) - self.net_update

    @property
    def total(self) -> int:
        return self.iterations * self.per_iteration

    def at(self, done: int) -> WorkItem:
        """The item that follows the first `done` ones.

        >>> schedule = Schedule(iterations=2, pretrain=1, steps=2, classes=3, net_update=2)
        >>> schedule.total, schedule.at(4), schedule.at(9).kind
        (18, WorkItem(iteration=0, step=0, kind='net_update', number=0), 'pretrain')
        """
        iteration, rest = divmod(done, self.per_iteration)
        if rest < self.pretrain:
            return WorkItem(iteration, 0, "pretrain", rest)
        step, place = divmod(rest - self.pretrain, self.classes + self.net_update)
        if place < self.classes:
            return WorkItem(iteration, step, "class_step", place)
        return WorkItem(iteration, step, "net_update", place - self.classes)

    def steps_before(self, item: WorkItem) -> int:
        """Steps of every class that come before an item."""
        return item.iteration * self.steps + item.step


def make_schedule(recipe: MatchingRecipe, *, images: int, classes: int, patches: int) -> Schedule:
    """For so many real images, classes, and synthetic patches in all."""
    net_update = {
        "real": -(-recipe.net_images // recipe.net_batch),
        "synthetic": recipe.net_epochs * synthetic_batches(patches, recipe.net_batch),
        "none": 0,
    }[recipe.net_data]
    return Schedule(
        iterations=recipe.iterations,
        pretrain=recipe.pretrain_epochs
        * batches_per_epoch(images, recipe.net_batch, keep_short=recipe.net_short_batch),
        steps=recipe.steps,
        classes=classes,
        net_update=net_update,
    )


def synthetic_batches(patches: int, batch: int) -> int:
    """Batches of one epoch on all synthetic patches."""
    return len(split_rows(torch.arange(patches), batch))
