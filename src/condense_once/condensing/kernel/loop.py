"""Kernel regression on a condensed set: the loop.

A work item is one update of all images, and of their labels if these are learned. For a few steps in a row, the real images, the
augmentation and the network, if there is one, stay the same, so the features of the real images are computed once. After the
last of these steps the network learns from the set. All samples are a function of the seed and the position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from condense_once.augment import Augmentation, Params
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space, to_uint8
from condense_once.condensing.condenser import CondenseEstimate, Condenser, State, Task
from condense_once.condensing.decode import decode
from condense_once.condensing.init import initial_images
from condense_once.condensing.kernel import time_budget
from condense_once.condensing.kernel.adam import Adam
from condense_once.condensing.kernel.kernels import wide_kernel
from condense_once.condensing.kernel.network_pool import NetworkPool
from condense_once.condensing.kernel.recipe import KernelRecipe
from condense_once.condensing.kernel.ridge import centred_one_hot, regression_loss
from condense_once.condensing.make_set import make_set
from condense_once.condensing.nested import nested_sizes
from condense_once.condensing.real_images import Normaliser, RealImages
from condense_once.condensing.recipe_fields import ImageSpace
from condense_once.condensing.whitening import whitened_source, with_fit, zca_space
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import make_net
from condense_once.nets.native import gradients_of_images_only
from condense_once.train.batches import ShuffledBatches
from condense_once.train.hardware import find_device
from condense_once.train.images import DataSpec
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import to_array, to_tensor

LABEL_CODING = "float16"  # of learned labels


class Iteration(NamedTuple):
    """What the steps of an iteration share."""

    number: int
    params: Params
    net: nn.Module | None
    inputs: Tensor  # [m, d] of real images, in double precision: their features, or the images themselves
    targets: Tensor  # [m, C]


class KernelCondenser(Condenser):
    """The images and labels of all classes, and the networks whose features are compared."""

    def __init__(
        self, task: Task, recipe: KernelRecipe, *, max_iterations: int | None = None, whitened: Source | None = None
    ) -> None:
        """`whitened` is the source in the space of the run, if that is ZCA and it was fitted already."""
        self.task, self._max_iterations = task, max_iterations or recipe.iterations
        source, config = task.source, task.config
        self.device = find_device(task.compute.device)
        self._zca = zca_space(source, recipe.zca_regularisation, recipe.zca) if recipe.space == "zca" else None
        self.source = source if self._zca is None else whitened or whitened_source(source, self._zca)
        shape, classes = source.train.shape, len(source.classes)
        self.images = torch.zeros(classes, config.ipc, *shape, device=self.device)
        one_hot = centred_one_hot(torch.arange(classes, device=self.device), classes).float()
        self.labels = one_hot[:, None].repeat(1, config.ipc, 1)  # [C, ipc, C]
        self._image_optimiser, self._label_optimiser = Adam(self.images), Adam(self.labels)
        self._normalise = Normaliser(self.source, self.device)
        grey = torch.full((shape[0], 1, 1), 0.5, device=self.device)  # IDC pads with mid-grey
        self._fill = (grey if recipe.space == "pixels" else self._normalise(grey)).flatten()
        self.adopt(recipe)

    def adopt(self, recipe: KernelRecipe) -> None:
        """Follow this recipe, which may be the one before, fitted to a time budget."""
        config, classes = self.task.config, len(self.source.classes)
        self.recipe, self._now = recipe, None  # type: KernelRecipe, Iteration | None
        self.real = RealImages(self.source, config.seed, self.device, real_batch=1, pool=recipe.pool)
        count = len(self.source.train.labels)
        self._batches = ShuffledBatches(np.arange(count), recipe.real_batch, config.seed, Stream.REAL_BATCHES)
        self._augmentation = Augmentation.parse(recipe.augmentation)
        space = self._zca or Space(recipe.space, self.source.mean, self.source.std)
        spec = DataSpec(self.source.train.shape, classes, space, "mse" if recipe.label_lr else "cross_entropy")
        patches = classes * config.patches_per_class
        self._networks = NetworkPool(self.task, recipe, spec, patches) if recipe.kernel == "features" else None

    # The loop

    def advance(self) -> float:
        if self._now is None or self._now.number != self.iteration:
            self._now = self.sample(self.iteration)
        loss = self.step(self._now)
        self.done += 1
        if self._networks is not None and self.iteration != self._now.number:
            self.update_network(self._now.number)
        return loss

    def sample(self, number: int) -> Iteration:
        """Real images, an augmentation and a network, and the features of these images."""
        net = None if self._networks is None else self._networks.begin(number).net
        params = self._augmentation.sample_shared(self.real.shape[1:], self._sampling(Stream.CLASS_STEP, number))
        rows = self._batches[number]
        labels = torch.from_numpy(np.asarray(self.source.train.labels)[rows]).to(self.device)
        with torch.no_grad():
            x = Augmentation.apply(self._normalise(self.real.pixels(rows)), params)
            inputs = self._inputs(net, x)
        return Iteration(number, params, net, inputs, centred_one_hot(labels, len(self.source.classes)))

    def step(self, now: Iteration) -> float:
        """Update all images, and their labels if these are learned; returns the loss."""
        recipe = self.recipe
        decay = recipe.decay_at(self.done / max(self.total, 1))
        images, labels = self.images.clone().requires_grad_(), self.labels.clone()
        learned = [images, labels.requires_grad_()] if recipe.label_lr else [images]
        loss = self.loss(images, labels, now)
        with gradients_of_images_only():
            gradients = torch.autograd.grad(loss, learned)
        value = float(loss.detach())
        if not math.isfinite(value) or not all(bool(torch.isfinite(each).all()) for each in gradients):
            raise BadOption(self._diverged())
        self._image_optimiser.step(gradients[0], decay * recipe.image_lr, self.done + 1)
        if recipe.space == "pixels":
            self.images.clamp_(0, 1)
        if recipe.label_lr:
            self._label_optimiser.step(gradients[1], decay * recipe.label_lr, self.done + 1)
        return value

    def loss(self, images: Tensor, labels: Tensor, now: Iteration) -> Tensor:
        """How badly kernel ridge regression on these images and labels predicts the real images of an iteration."""
        support = self._inputs(now.net, Augmentation.apply(self.patches(images), now.params))
        return regression_loss(
            self._kernel(now.inputs, support),
            self._kernel(support, support),
            self._patch_labels(labels),
            now.targets,
            self.recipe.ridge,
            self._prefixes(),
        )

    def patches(self, images: Tensor) -> Tensor:
        """Patches `[n, ch, h, w]` of the mosaics `[C, ipc, ch, h, w]` as network inputs: by class, then by image."""
        classes, ipc, *shape = images.shape
        cells = decode(images.flatten(0, 1), self.task.config.factor, self._fill)  # all of the first cell first
        patches = cells.view(-1, classes, ipc, *shape).permute(1, 2, 0, 3, 4, 5).reshape(-1, *shape)
        return self._normalise(patches) if self.recipe.space == "pixels" else patches

    def _patch_labels(self, labels: Tensor) -> Tensor:
        """Label vectors `[n, C]` of the patches, in double precision."""
        return labels.flatten(0, 1).repeat_interleave(self.task.config.factor**2, 0).double()

    def _prefixes(self) -> list[Tensor]:
        """The patches of all images and, for a nested set, of the first images of every class."""
        config, each = self.task.config, self.task.config.patches_per_class
        sizes = nested_sizes(config.ipc) if config.nested else [config.ipc]
        place = torch.arange(len(self.images) * each, device=self.device) % each
        return [(place < size * config.factor**2).nonzero()[:, 0] for size in sizes]

    def _inputs(self, net: nn.Module | None, x: Tensor) -> Tensor:
        return x.flatten(1).double() if net is None or self._networks is None else self._networks.features(net, x)

    def _kernel(self, one: Tensor, other: Tensor) -> Tensor:
        if self.recipe.kernel == "features":
            return one @ other.T
        return wide_kernel(one, other, self.recipe.kernel, self.recipe.depth)

    def update_network(self, turn: int) -> None:
        """Let the network of an iteration learn from the set as it is."""
        if self._networks is None:
            return
        if self.recipe.label_lr:
            y = self._patch_labels(self.labels).float()
        else:
            y = torch.arange(len(self.images), device=self.device).repeat_interleave(self.task.config.patches_per_class)
        self._networks.learn(turn, self.patches(self.images), y)

    def _sampling(self, *purpose: str | int) -> torch.Generator:
        return generator(self.task.config.seed, *purpose)

    def _diverged(self) -> str:
        return (
            f"The loss is NaN or infinite in iteration {self.iteration + 1}; resume from the last checkpoint, or start again,"
            f" with a smaller image_lr (now {self.recipe.image_lr:g}) or a larger ridge (now {self.recipe.ridge:g}) in"
            " `overrides`."
        )

    # What the runner asks for

    @property
    def recipe_json(self) -> dict[str, Any]:
        return asdict(self.recipe)

    @property
    def total(self) -> int:
        return self.recipe.iterations * self.recipe.steps

    @property
    def iteration(self) -> int:
        return self.done // self.recipe.steps

    @property
    def images_per_item(self) -> float:
        return len(self.images) * self.task.config.patches_per_class + self.recipe.real_batch / self.recipe.steps

    def initialise(self) -> None:
        net, config = self.task.config.net, self.task.config
        shape, classes = self.source.train.shape, len(self.source.classes)
        chooser = make_net(net, shape, classes, generator=self._sampling(Stream.INIT)).to(self.device)
        self.images.copy_(initial_images(config, self.recipe.init, self._space, self.real, chooser))

    @property
    def _space(self) -> ImageSpace:
        """Of the images; whitened ones are the normalised images of a whitened source."""
        return "pixels" if self.recipe.space == "pixels" else "normalised"

    def state(self) -> State:
        optimisers = {"image": self._image_optimiser, "label": self._label_optimiser}
        found: State = {"images": to_array(self.images), "labels": to_array(self.labels)}
        for name, optimiser in optimisers.items():
            found |= {f"{name}_mean": to_array(optimiser.mean), f"{name}_square": to_array(optimiser.square)}
        networks = {} if self._networks is None else self._networks.state()
        return found | {f"networks/{name}": array for name, array in networks.items()}

    def restore(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        tensors = {"images": self.images, "labels": self.labels}
        for name, optimiser in {"image": self._image_optimiser, "label": self._label_optimiser}.items():
            tensors |= {f"{name}_mean": optimiser.mean, f"{name}_square": optimiser.square}
        for name, tensor in tensors.items():
            tensor.copy_(to_tensor(state[name], tensor))
        if self._networks is not None:
            start = "networks/"
            self._networks.restore({name.removeprefix(start): state[name] for name in state if name.startswith(start)})
        self.done = done

    def result(self) -> CondensedSet:
        config = self.task.config
        if self.recipe.label_lr:
            return self._with_learned_labels()
        made = make_set(self.images, self._space, self.task, nested_sizes(config.ipc) if config.nested else ())
        return made if self._named_zca is None else replace(made, space=self._named_zca)

    @cached_property
    def _named_zca(self) -> Space | None:
        return None if self._zca is None else with_fit(self._zca, self.task.source)

    def _with_learned_labels(self) -> CondensedSet:
        """The class of an image is the largest entry of its label, which need not be the one that it started with."""
        source, values = self.task.source, self.images.flatten(0, 1).cpu().numpy()
        soft = LabelCoding.parse(LABEL_CODING).rounded(self.labels.flatten(0, 1).cpu().numpy())
        return CondensedSet.from_mosaics(
            to_uint8(values) if self.recipe.space == "pixels" else values,
            soft.argmax(1),
            factor=self.task.config.factor,
            space=self._named_zca or Space(self.recipe.space, source.mean, source.std),
            classes=source.classes,
            soft_labels=soft,
            label_kind="regression",
            label_coding=LABEL_CODING,
        )

    def fit_to_time(self, seconds: float) -> str:
        recipe, decision = time_budget.fit_recipe(self, seconds)
        self.adopt(recipe)
        return decision

    def replan(self, iterations: int) -> None:
        self.recipe = replace(self.recipe, iterations=min(iterations, self._max_iterations))

    def twin(self, recipe: KernelRecipe) -> KernelCondenser:
        """Another condenser for the same task, to time its work items."""
        return KernelCondenser(self.task, recipe, whitened=None if self._zca is None else self.source)

    def estimate(self) -> CondenseEstimate:
        return time_budget.estimate(self)
