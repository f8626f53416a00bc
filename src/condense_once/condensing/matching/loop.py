"""The matching loop: for many networks, update the images of every class, and train the network in between.

Its work is a sequence of small items, and the number of items done is the whole position: every sample is a function of the
seed and the position. So a checkpoint holds the images and the network, but no random state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from condense_once.augment import Augmentation, SingleAugmentation
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.condenser import CondenseEstimate, Condenser, State, Task
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.decode import factors_within
from condense_once.condensing.init import initial_images
from condense_once.condensing.make_set import make_set
from condense_once.condensing.matching import time_budget
from condense_once.condensing.matching.adaptive_subset import AdaptiveSubset
from condense_once.condensing.matching.class_step import ClassStep
from condense_once.condensing.matching.network import MatchingNetwork
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.matching.schedule import WorkItem, make_schedule, synthetic_batches
from condense_once.condensing.nested import nested_sizes
from condense_once.condensing.real_images import RealImages
from condense_once.errors import BadOption
from condense_once.train.batches import Rows
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import to_tensor
from condense_once.train.trainer import split_rows

PRETRAIN_SYNC = 32  # batches of pretraining between two sync points


class MatchingCondenser(Condenser):
    """The images of all classes and the network they are matched with."""

    def __init__(
        self,
        task: Task,
        recipe: MatchingRecipe,
        network: MatchingNetwork,
        class_step: ClassStep,
        *,
        max_iterations: int | None = None,
        restart_network: bool = False,
    ) -> None:
        self.task, self.network, self.class_step, self._restart_network = task, network, class_step, restart_network
        self._max_iterations = max_iterations or recipe.iterations
        self.images = torch.zeros(
            len(task.source.classes), task.config.ipc, *task.source.train.shape, device=network.device
        )
        self.velocity = torch.zeros_like(self.images)
        self.adopt(recipe)

    def adopt(self, recipe: MatchingRecipe) -> None:
        """Follow this recipe, which may be the one before, fitted to a time budget."""
        task, classes = self.task, len(self.task.source.classes)
        self.recipe = recipe
        self.real = RealImages(
            task.source,
            task.config.seed,
            self.network.device,
            real_batch=recipe.real_batch,
            net_batch=recipe.net_batch,
            net_short_batch=recipe.net_short_batch,
            pool=recipe.pool,
        )
        patches = classes * task.config.patches_per_class
        self.schedule = make_schedule(recipe, images=len(self.real), classes=classes, patches=patches)
        self._augmentation = (SingleAugmentation if recipe.single_op else Augmentation).parse(recipe.augmentation)
        self._selected: dict[int, Rows] = {}  # DREAM's real batch of each class
        self.subset: AdaptiveSubset | None = None  # MDC's; one image per class has no subset
        if recipe.subset_period and task.config.ipc > 1:
            self.subset = AdaptiveSubset(classes, task.config.ipc, recipe.subset_period, self.network.device)

    # The loop

    def advance(self) -> float | None:
        item, loss = self.schedule.at(self.done), None
        if self.done % self.schedule.per_iteration == 0:
            self._start_network(item.iteration)
        match item.kind:
            case "pretrain":
                self._pretrain(item)
            case "class_step":
                loss = self._update_class(item)
            case "net_update":
                self._update_network(item)
        self.done += 1
        if self.done % self.schedule.per_iteration == 0:
            self._end_network(item.iteration)
        return loss

    def _start_network(self, iteration: int) -> None:
        self.network.reinitialise(self._sampling(Stream.NETWORK, iteration))
        if self.recipe.space == "pixels":
            self.images.clamp_(0, 1)  # once per network, not after every step, as in IDC
        if self.subset is not None:
            self.subset.start_network()

    def _end_network(self, iteration: int) -> None:
        if self.subset is not None and self.subset.is_checked_after(iteration):
            self.subset.gather(self.task.world)
            self.subset.choose(self.recipe.steps)

    def _pretrain(self, item: WorkItem) -> None:
        number = item.iteration * self.schedule.pretrain + item.number
        self.network.update(*self.real.net_batch(number), self._sampling(Stream.PRETRAINING, item.iteration, number))
        if item.number == self.schedule.pretrain - 1:
            self.task.world.broadcast_weights(self.network.net)

    def _update_class(self, item: WorkItem) -> float | None:
        """One gradient step on the images of a class, if this process owns it."""
        recipe, label, number = self.recipe, item.number, self.schedule.steps_before(item)
        if label == 0 and self.network.has_batch_norm:
            images, sampling = self.real.calibration_batch(number), self._sampling(Stream.BATCH_NORM, number)
            self.network.calibrate_batch_norm(images, sampling)
        if not self.task.world.owns(label):
            return None
        real = self.real.pixels(self._real_batch(item))
        sampling = self._sampling(Stream.CLASS_STEP, label, number)
        rows, *subsets = self._sample_patches(sampling)
        params = self._augmentation.sample_shared(self.real.shape[1:], sampling)
        index = torch.tensor(label, device=self.network.device)
        if self.subset is not None and self.subset.is_checked_after(item.iteration):
            self.subset.add(label, *self.class_step.features(self.images[label], real, params))
        loss, gradient = self.class_step(self.images[label], real, index, rows, params, *subsets)
        if not math.isfinite(value := float(loss)) or not bool(torch.isfinite(gradient).all()):
            raise BadOption(self._diverged(item))
        if self.subset is not None:
            gradient[: self.subset.frozen] = 0
        idle = self.schedule.classes - 1 if recipe.idle_momentum else 0
        momentum_step(
            self.images[label],
            self.velocity[label],
            gradient,
            lr=recipe.image_lr,
            momentum=recipe.image_momentum,
            idle=idle,
        )
        return value

    def _update_network(self, item: WorkItem) -> None:
        """One batch of inner-loop training, on real or on synthetic images."""
        if self.recipe.net_data == "real":
            updates = item.iteration * (self.recipe.steps - 1) + item.step
            number = updates * self.schedule.net_update + item.number
            sampling = self._sampling(Stream.NET_UPDATE, item.iteration, item.step, item.number, number)
            self.network.update(*self.real.net_batch(number), sampling)
        else:
            self._train_on_synthetic(item)
        if item.number == self.schedule.net_update - 1:
            self.task.world.broadcast_weights(self.network.net)

    def _train_on_synthetic(self, item: WorkItem) -> None:
        if item.number == 0:
            self.task.world.gather_classes(self.images)
        each = self.task.config.patches_per_class
        patches = self.schedule.classes * each
        epoch, place = divmod(item.number, synthetic_batches(patches, self.recipe.net_batch))
        where = (item.iteration, item.step, epoch)
        order = torch.randperm(patches, generator=self._sampling(Stream.SYNTHETIC_ORDER, *where))
        rows = split_rows(order, self.recipe.net_batch)[place]
        with torch.no_grad():
            x = self._patches(rows)
        labels = (rows // each).to(self.network.device)
        self.network.update(x, labels, self._sampling(Stream.NET_UPDATE, *where, place))

    def _real_batch(self, item: WorkItem) -> Rows:
        recipe, label, number = self.recipe, item.number, self.schedule.steps_before(item)
        if not recipe.reselect_every:
            return self.real.class_batch(label, number)
        if item.step % recipe.reselect_every == 0 or label not in self._selected:
            net = self.network.net
            self._selected[label] = self.real.representatives(label, recipe.real_batch, net, number)
        return self._selected[label]

    def _sample_patches(self, sampling: Generator) -> list[Tensor]:
        """The patches of a class that a step matches, group by group: all, or as many as the recipe allows."""
        config, most = self.task.config, self.recipe.max_patches
        rows = torch.randperm(decoded_patches(config, self.recipe), generator=sampling)
        groups = (rows[rows % config.ipc < size][:most] for size in self._matched_sizes(sampling))
        return [group.sort().values.to(self.network.device) for group in groups]

    def _matched_sizes(self, sampling: Generator) -> list[int]:
        """Images per class of each group that a step matches: all of them, and those of MDC's subset.

        Of a nested set, a step matches a random prefix of the images, so that on average all prefixes are matched.
        """
        config = self.task.config
        if self.subset is not None:
            return [config.ipc, self.subset.current] if self.subset.current else [config.ipc]
        if not config.nested:
            return [config.ipc]
        sizes = nested_sizes(config.ipc)
        return [sizes[int(torch.randint(len(sizes), (), generator=sampling))]]

    def _patches(self, rows: Tensor) -> Tensor:
        """Patches by their number in the whole set; only the classes they belong to are decoded."""
        each = self.task.config.patches_per_class
        labels = torch.from_numpy(np.unique(rows.numpy() // each))
        decoded = torch.cat([self.class_step.patches(self.images[label]) for label in labels.tolist()])
        places = torch.searchsorted(labels, rows // each) * each + rows % each
        return decoded[places.to(decoded.device)]

    def _sampling(self, *purpose: str | int) -> Generator:
        return generator(self.task.config.seed, *purpose)

    def _diverged(self, item: WorkItem) -> str:
        recipe = self.recipe
        return (
            f"The loss of class {self.task.source.classes[item.number]!r} is NaN or infinite (network {item.iteration + 1}, step"
            f" {item.step + 1}); resume from the last checkpoint, or start again, with a smaller image_lr (now"
            f" {recipe.image_lr:g}) or net_lr (now {recipe.net_lr:g}) in `overrides`."
        )

    # What the runner asks for

    @property
    def recipe_json(self) -> dict[str, Any]:
        return asdict(self.recipe)

    @property
    def total(self) -> int:
        return self.schedule.total

    @property
    def iteration(self) -> int:
        return self.done // self.schedule.per_iteration

    @property
    def steps(self) -> int:
        return self.schedule.steps_before(self.schedule.at(self.done))

    @property
    def images_per_item(self) -> float:
        schedule = self.schedule
        return (
            images_per_step(self.task.config, self.recipe) * schedule.steps * schedule.classes / schedule.per_iteration
        )

    @property
    def is_sync_point(self) -> bool:
        """Before every step, and now and then while a network is pretrained."""
        item = self.schedule.at(self.done)
        first = item.number % PRETRAIN_SYNC == 0 if item.kind == "pretrain" else item.number == 0
        return self.done >= self.total or (first and item.kind != "net_update")

    def synchronise(self) -> None:
        world, recipe = self.task.world, self.recipe
        world.gather_classes(self.images)
        world.gather_classes(self.velocity)
        if recipe.reselect_every:
            most = min(recipe.real_batch, max(map(len, self.real.rows)))
            self._selected = world.gather_rows(self._selected, self.schedule.classes, most)
        if self.subset is not None:
            self.subset.gather(world)

    @property
    def is_finite(self) -> bool:
        tensors = [self.images, self.velocity, *self.network.net.state_dict().values()]
        if self.subset is not None:
            tensors += self.subset.tensors
        return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)

    def initialise(self) -> None:
        self.network.reinitialise(self._sampling(Stream.INIT))
        config, recipe = self.task.config, self.recipe
        self.images.copy_(initial_images(config, recipe.init, recipe.space, self.real, self.network.net))

    def state(self) -> State:
        selected = {f"selected/{label}": rows.astype(np.uint32) for label, rows in self._selected.items()}
        images = {"images": self.images.cpu().numpy(), "velocity": self.velocity.cpu().numpy()}
        subset = {} if self.subset is None else self.subset.state()
        return {**images, **self.network.state(), **selected, **subset}

    def restore(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        self.images.copy_(to_tensor(state["images"], self.images))
        self.velocity.copy_(to_tensor(state["velocity"], self.velocity))
        self.network.restore(state)
        self._selected = {
            int(name.removeprefix("selected/")): rows.astype(np.int64)
            for name, rows in state.items()
            if name.startswith("selected/")
        }
        own = dict(enumerate(self.real.rows))
        if not all(
            rows.ndim == 1 and np.isin(rows, own.get(label, ())).all() for label, rows in self._selected.items()
        ):
            raise ValueError("its real images are not those of their classes")
        if self.subset is not None:
            self.subset.restore(state)
        self.done = done - done % self.schedule.per_iteration if self._restart_network else done

    def result(self) -> CondensedSet:
        config = self.task.config
        if self.recipe.subset_period:
            made = make_set(self.images, self.recipe.space, self.task, range(1, config.ipc + 1))
            return replace(made, provenance={"subsets": [] if self.subset is None else self.subset.chosen})
        sizes = nested_sizes(config.ipc) if config.nested else ()
        return make_set(self.images, self.recipe.space, self.task, sizes)

    def fit_to_time(self, seconds: float) -> str:
        recipe, decision = time_budget.fit_recipe(self, seconds)
        self.adopt(recipe)
        return decision

    def replan(self, iterations: int) -> None:
        """Up to the number of the recipe as it was before it was shortened."""
        iterations = min(iterations, self._max_iterations)
        self.recipe = replace(self.recipe, iterations=iterations)
        self.schedule = replace(self.schedule, iterations=iterations)

    def twin(self, recipe: MatchingRecipe) -> MatchingCondenser:
        """Another condenser with the same network, to time its work items in this process alone."""
        task = replace(self.task, world=self.task.world.disconnected())
        made = MatchingCondenser(task, recipe, self.network, self.class_step)
        if made.subset is not None:
            made.subset.chosen = [(task.config.ipc + 1) // 2]  # most steps match a subset, too; this is a typical one
        return made

    def estimate(self) -> CondenseEstimate:
        return time_budget.estimate(self)


def images_per_step(config: CondenseConfig, recipe: MatchingRecipe) -> int:
    """Real and synthetic images of one class step."""
    return recipe.real_batch + min(recipe.max_patches, decoded_patches(config, recipe))


def decoded_patches(config: CondenseConfig, recipe: MatchingRecipe) -> int:
    """Patches of a class that a step decodes, before it samples some of them."""
    if recipe.decode != "bound":
        return config.patches_per_class
    return sum(count * factor**2 for factor, count in factors_within(config.ipc, config.factor, recipe.max_patches))


def momentum_step(
    images: Tensor, velocity: Tensor, gradient: Tensor, *, lr: float, momentum: float, idle: int = 0
) -> None:
    """SGD with momentum on the images of one class, in place, followed by `idle` steps without a gradient.

    IDC's single optimiser for all classes also moves the classes whose turn it is not, by their decaying momentum: C − 1 steps
    with zero gradient between two updates of a class. They are applied at once, in closed form, so that classes stay
    independent. With velocity v and momentum m: `images −= lr · v · (m + m² + … + m^idle)`, `v ← m^idle · v`.

    >>> images, velocity = torch.zeros(1), torch.zeros(1)
    >>> momentum_step(images, velocity, torch.ones(1), lr=1.0, momentum=0.5, idle=2)
    >>> images.item(), velocity.item()  # 1 for its own step, a half and a quarter for the two after
    (-1.75, 0.25)
    """
    velocity.mul_(momentum).add_(gradient)
    ahead = momentum * (1 - momentum**idle) / (1 - momentum)
    images.sub_(velocity, alpha=lr * (1 + ahead))
    velocity.mul_(momentum**idle)
