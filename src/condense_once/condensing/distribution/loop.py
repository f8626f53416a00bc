"""Distribution matching along training trajectories: the loop.

The first work items train the experts that do not exist yet, a batch each. After that, an item is one update of all images.
For a few steps in a row, one snapshot of an expert, the real images and the augmentation stay the same, so the mean features
of the real images are computed once. All samples are a function of the seed and the position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.augment import Augmentation, Params
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.condenser import CondenseEstimate, Condenser, State, Task
from condense_once.condensing.decode import decode
from condense_once.condensing.distribution import time_budget
from condense_once.condensing.distribution.frozen_net import FrozenNet
from condense_once.condensing.distribution.loss import class_cross_entropy, mean_distance
from condense_once.condensing.distribution.recipe import DistributionRecipe
from condense_once.condensing.experts.config import TGDD_EXPERTS, ExpertConfig
from condense_once.condensing.experts.phase import ExpertPhase
from condense_once.condensing.init import initial_images
from condense_once.condensing.make_set import make_set
from condense_once.condensing.nested import Stage, nested_sizes, stage_at
from condense_once.condensing.real_images import Normaliser, RealImages
from condense_once.errors import BadOption
from condense_once.nets.native import gradients_of_images_only
from condense_once.train.hardware import find_device
from condense_once.train.images import TrainingData, training_data
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import to_tensor

EXPERT_SYNC = 16  # batches of expert training between two sync points
PASSES_PER_MINUTE = 10_000  # of images, about: to decide under a time budget whether compiling pays
AT_ONCE = 400  # patches in one forward pass: classes are independent, so more of them gain nothing


class Iteration(NamedTuple):
    """What the steps of an iteration share."""

    number: int
    params: Params
    targets: Tensor  # [C, d] mean features of real images


class DistributionCondenser(Condenser):
    """The images of all classes, the network that they are matched in, and the experts that it takes its weights from."""

    def __init__(self, task: Task, recipe: DistributionRecipe, *, max_iterations: int | None = None) -> None:
        self.task, self._max_iterations = task, max_iterations or recipe.iterations
        source, config = task.source, task.config
        self.device = find_device(task.compute.device)
        shape, classes = source.train.shape, len(source.classes)
        self.images = torch.zeros(classes, config.ipc, *shape, device=self.device)
        self.velocity = torch.zeros_like(self.images)
        self.net = self._frozen_net(recipe)
        grey = torch.full((shape[0], 1, 1), 0.5, device=self.device)  # IDC pads with mid-grey
        self._fill = (grey if recipe.space == "pixels" else Normaliser(source, self.device)(grey)).flatten()
        self.adopt(recipe)

    def _frozen_net(self, recipe: DistributionRecipe) -> FrozenNet:
        task, source = self.task, self.task.source
        return FrozenNet(
            task.config.net, source.train.shape, len(source.classes), passes=self._passes(recipe), compute=task.compute
        )

    def _passes(self, recipe: DistributionRecipe) -> int:
        """Images that pass through the network."""
        config = self.task.config
        if config.minutes is not None:
            return round(config.minutes * PASSES_PER_MINUTE)
        return recipe.iterations * recipe.steps * len(self.images) * config.patches_per_class

    def adopt(self, recipe: DistributionRecipe) -> None:
        """Follow this recipe, which may be the one before, fitted to a time budget."""
        source, config = self.task.source, self.task.config
        self.recipe, self._now = recipe, None  # type: DistributionRecipe, Iteration | None
        self.real = RealImages(source, config.seed, self.device, real_batch=recipe.real_batch, pool=recipe.pool)
        self._augmentation = Augmentation.parse(recipe.augmentation)
        self._net_ahead = self._frozen_net(recipe) if recipe.ahead else None
        self.experts = self.make_experts(recipe)

    def make_experts(self, recipe: DistributionRecipe) -> ExpertPhase:
        """The experts of a recipe, not yet read from disk."""
        task, training = self.task, replace(TGDD_EXPERTS, epochs=recipe.expert_epochs, batch=recipe.expert_batch)
        return ExpertPhase(
            task.source,
            self._training_data,
            ExpertConfig(task.config.net, training, every=recipe.expert_every, batches=recipe.expert_batches),
            recipe.experts,
            root=task.experts,
            compute=task.compute,
            writes=task.world.is_primary,
        )

    @cached_property
    def _training_data(self) -> TrainingData:
        return training_data(self.task.source)

    # The loop

    def advance(self) -> float | None:
        if self.done < self.expert_items:
            self.experts.advance()
            self.done += 1
            return None
        if self._now is None or self._now.number != self.iteration:
            self._now = self.sample(self.iteration)
        loss = self.step(self._now)
        self.done += 1
        return loss

    def sample(self, iteration: int) -> Iteration:
        """Load a snapshot, sample real images and an augmentation, and compute the mean features of these images."""
        sampling = self._sampling(Stream.SNAPSHOT, iteration)
        self.load_snapshot(sampling)
        params = self._augmentation.sample_shared(self.real.shape[1:], sampling)
        with torch.no_grad():
            means = {label: self._real_mean(label, iteration, params) for label in self._owned}
        targets = torch.zeros(len(self.images), len(next(iter(means.values()))), device=self.device)
        for label, mean in means.items():
            targets[label] = mean
        return Iteration(iteration, params, targets)

    def load_snapshot(self, sampling: torch.Generator) -> None:
        """Give the networks the weights of an expert at a sampled moment, and of the same one a little later."""
        runs, world = self.experts.trajectories, self.task.world
        run = runs[int(torch.randint(len(runs), (), generator=sampling))]
        place = int(torch.randint(run.snapshots, (), generator=sampling))
        run.load_into(self.net.module, place)
        world.broadcast_weights(self.net.module)
        if self._net_ahead is not None:
            ahead = int(torch.randint(min(self.recipe.ahead, run.snapshots - 1 - place) + 1, (), generator=sampling))
            run.load_into(self._net_ahead.module, place + ahead)
            world.broadcast_weights(self._net_ahead.module)

    def _real_mean(self, label: int, iteration: int, params: Params) -> Tensor:
        pixels = self.real.pixels(self.real.class_batch(label, iteration))
        return self.net(Augmentation.apply(self.real.normalise(pixels), params))[0].mean(0)

    def step(self, now: Iteration) -> float:
        """Update the images of every class that this process owns; returns the mean loss of a class."""
        recipe, rows, lr = self.recipe, self._sample_patches(), self._learning_rates()
        at_once, total = max(1, AT_ONCE // len(rows)), 0.0
        for labels in (self._owned[at : at + at_once] for at in range(0, len(self._owned), at_once)):
            images = self.images[labels].requires_grad_()
            loss = self._loss(images, labels, rows, now)
            with gradients_of_images_only():
                (gradient,) = torch.autograd.grad(loss, images)
            if not math.isfinite(value := float(loss.detach())) or not bool(torch.isfinite(gradient).all()):
                raise BadOption(self._diverged())
            self.velocity[labels] = recipe.image_momentum * self.velocity[labels] + gradient
            moved = images.detach() - lr * self.velocity[labels]
            self.images[labels] = moved.clamp_(0, 1) if recipe.space == "pixels" else moved
            total += value
        return total / max(len(self._owned), 1)

    @property
    def _stage(self) -> Stage:
        """The images that are matched: all of them throughout, unless a nested set grows in stages."""
        recipe, config = self.recipe, self.task.config
        fraction = self.steps / (recipe.iterations * recipe.steps)
        if config.nested and recipe.nesting == "stages":
            return stage_at(fraction, config.ipc)
        return Stage(images=config.ipc, settled=0, fraction=fraction)

    def _learning_rates(self) -> Tensor:
        """Of each image of a class, [ipc, 1, 1, 1]."""
        stage = self._stage
        rates = torch.full((self.task.config.ipc, 1, 1, 1), self.recipe.lr_at(stage.fraction), device=self.device)
        rates[: stage.settled] *= self.recipe.settled_lr
        return rates

    def _matched_prefixes(self) -> list[int]:
        """Patches per class of every prefix that a step matches."""
        config = self.task.config
        every = config.nested and self.recipe.nesting == "prefixes"
        return [size * config.factor**2 for size in (nested_sizes(config.ipc) if every else [self._stage.images])]

    def _loss(self, images: Tensor, labels: Sequence[int], rows: Tensor, now: Iteration) -> Tensor:
        """The sum over these classes, whose mosaics are `images` [k, ipc, ch, h, w]; `rows` are their patches, by rank."""
        x = self._patches(images)[:, rows].flatten(0, 1)
        x = Augmentation.apply(self.real.normalise(x) if self.recipe.space == "pixels" else x, now.params)
        features, logits = self.net(x)
        if self._net_ahead is not None:
            logits = self._net_ahead(x)[1]
        counts = torch.searchsorted(rows, torch.tensor(self._matched_prefixes(), device=rows.device)).tolist()
        prefixes = sorted({count for count in counts if count})  # without repeats, if patches are sampled
        grouped = (len(labels), len(rows), -1)
        entropy = class_cross_entropy(logits.view(grouped), torch.tensor(labels, device=self.device))
        distance = mean_distance(now.targets[labels], features.view(grouped), prefixes)
        return (distance + self.recipe.cross_entropy * entropy).sum()

    def _patches(self, images: Tensor) -> Tensor:
        """Patches `[k, n, ch, h, w]` of the mosaics `[k, ipc, ch, h, w]`, image by image, as a nested set ranks them."""
        classes, ipc, *shape = images.shape
        cells = decode(images.flatten(0, 1), self.task.config.factor, self._fill)  # all of the first cell first
        return cells.view(-1, classes, ipc, *shape).permute(1, 2, 0, 3, 4, 5).reshape(classes, -1, *shape)

    def _sample_patches(self) -> Tensor:
        """The patches of every class that a step matches: all of the stage, or as many as the recipe allows."""
        sampling = self._sampling(Stream.CLASS_STEP, self.done - self.expert_items)
        patches = self._stage.images * self.task.config.factor**2
        rows = torch.randperm(patches, generator=sampling)[: self.recipe.max_patches]
        return rows.sort().values.to(self.device)

    @property
    def _owned(self) -> list[int]:
        return [label for label in range(len(self.images)) if self.task.world.owns(label)]

    def _sampling(self, *purpose: str | int) -> torch.Generator:
        return generator(self.task.config.seed, *purpose)

    def _diverged(self) -> str:
        return (
            f"The loss is NaN or infinite in iteration {self.iteration + 1}; resume from the last checkpoint, or start again,"
            f" with a smaller image_lr (now {self.recipe.image_lr:g}) in `overrides`."
        )

    # What the runner asks for

    @property
    def recipe_json(self) -> dict[str, Any]:
        return asdict(self.recipe)

    @property
    def expert_items(self) -> int:
        """Work items that train experts, done or not."""
        return self.experts.items if self.recipe.iterations else 0

    @property
    def total(self) -> int:
        return self.expert_items + self.recipe.iterations * self.recipe.steps

    @property
    def iteration(self) -> int:
        return self.steps // self.recipe.steps

    @property
    def steps(self) -> int:
        return max(self.done - self.expert_items, 0)

    @property
    def images_per_item(self) -> float:
        each = min(self.recipe.max_patches, self.task.config.patches_per_class)
        return len(self._owned) * (each + self.recipe.real_batch / self.recipe.steps)

    @property
    def is_sync_point(self) -> bool:
        return self.done >= self.expert_items or self.done % EXPERT_SYNC == 0

    def synchronise(self) -> None:
        self.task.world.gather_classes(self.images)
        self.task.world.gather_classes(self.velocity)

    def initialise(self) -> None:
        self._find_experts()
        self.images.copy_(
            initial_images(self.task.config, self.recipe.init, self.recipe.space, self.real, self.net.module)
        )

    def _find_experts(self) -> None:
        """Continue with the experts as they are on disk, once every process has read them."""
        self.experts.restore()
        self.done = self.experts.done if self.recipe.iterations else 0
        if not self.task.world.all_equal(self.done):
            raise BadOption(
                f"The processes of this run find different experts in {self.experts.folder}; all of them must see"
                " the same folder (`experts`)."
            )

    def state(self) -> State:
        return {"images": self.images.cpu().numpy(), "velocity": self.velocity.cpu().numpy()}

    def restore(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        self.images.copy_(to_tensor(state["images"], self.images))
        self.velocity.copy_(to_tensor(state["velocity"], self.velocity))
        self._find_experts()
        if done >= self.expert_items:
            if self.done < self.expert_items:
                raise BadOption("The experts of this run are gone")
            self.done = done

    def result(self) -> CondensedSet:
        config = self.task.config
        return make_set(self.images, self.recipe.space, self.task, nested_sizes(config.ipc) if config.nested else ())

    def fit_to_time(self, seconds: float) -> str:
        recipe, decision = time_budget.fit_recipe(self, seconds)
        self.adopt(recipe)
        return decision

    def replan(self, iterations: int) -> None:
        self.recipe = replace(self.recipe, iterations=min(iterations, self._max_iterations))

    def twin(self, recipe: DistributionRecipe) -> DistributionCondenser:
        """Another condenser for the same task, to time its work items in this process alone."""
        return DistributionCondenser(replace(self.task, world=self.task.world.disconnected()), recipe)

    def estimate(self) -> CondenseEstimate:
        return time_budget.estimate(self)
