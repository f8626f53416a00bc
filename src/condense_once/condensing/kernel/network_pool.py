"""Networks that learn from the set while it is condensed: the features that a convolutional kernel is made of.

Networks take turns. Each learns a little from the set after every turn and is initialised again at a given age. The ages are
spread, so that the set meets young and old networks at any time; they are a function of the turn, so none has to be saved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from condense_once.condensing.condenser import State, Task
from condense_once.condensing.kernel.recipe import KernelRecipe
from condense_once.condensing.real_images import FEATURE_BATCH
from condense_once.nets import features_and_logits, is_large
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import StepTrainer

CHUNK = 16  # large images per pass: the graph of one takes some 200 MB at 224×224


class NetworkPool:
    def __init__(self, task: Task, recipe: KernelRecipe, spec: DataSpec, patches: int) -> None:
        self._recipe, self._seed, self._large = recipe, task.config.seed, is_large(spec.shape)
        training = Recipe(
            epochs=1, batch=recipe.net_batch, lr=recipe.net_lr, augmentation=recipe.net_augmentation, cutmix=0.0
        )
        passes = recipe.iterations * recipe.steps * patches
        self._trainers = [
            StepTrainer(task.config.net, spec, training, passes=passes, compute=task.compute)
            for _ in range(recipe.networks)
        ]

    def begin(self, turn: int) -> StepTrainer:
        """The network of a turn, initialised again if it is new or old."""
        trainer = self._trainers[turn % len(self._trainers)]
        if self._is_new(turn):
            trainer.reinitialise(generator(self._seed, Stream.NETWORK, turn))
        return trainer

    def _is_new(self, turn: int) -> bool:
        """Whether a network starts afresh in this turn.

        Ages count turns of that network; those of different networks are spread evenly over the age at which they end.
        """
        own, place = divmod(turn, len(self._trainers))
        return own == 0 or (own + place * self.turns // len(self._trainers)) % self.turns == 0

    @property
    def turns(self) -> int:
        """Of a network until it is initialised again."""
        return max(self._recipe.net_age // self._recipe.net_steps, 1)

    def learn(self, turn: int, x: Tensor, y: Tensor) -> None:
        """Update the network of a turn on patches, as network inputs, and their classes or label vectors."""
        trainer = self._trainers[turn % len(self._trainers)]
        for step in range(self._recipe.net_steps):
            sampling = generator(self._seed, Stream.NET_UPDATE, turn, step)
            rows = torch.randperm(len(x), generator=sampling)[: self._recipe.net_batch].to(x.device)
            trainer.update(x[rows], y[rows], sampling)

    def features(self, net: nn.Module, x: Tensor) -> Tensor:
        """Features `[n, d]` in double precision, scaled so that their products are means; differentiable by the images."""
        net.eval()
        batch = CHUNK if self._large else FEATURE_BATCH if not torch.is_grad_enabled() else len(x)
        recompute = self._large and torch.is_grad_enabled()
        parts = [
            checkpoint(_forward, net, part, use_reentrant=False) if recompute else _forward(net, part)
            for part in torch.split(x, batch)
        ]
        features: Tensor = torch.cat(parts).double()
        return features / math.sqrt(features.shape[1])

    def state(self) -> State:
        return {
            f"{place}/{name}": array
            for place, trainer in enumerate(self._trainers)
            for name, array in trainer.state().items()
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        for place, trainer in enumerate(self._trainers):
            start = f"{place}/"
            trainer.restore({name.removeprefix(start): state[name] for name in state if name.startswith(start)})


def _forward(net: nn.Module, x: Tensor) -> Tensor:
    return features_and_logits(net, x.contiguous(memory_format=torch.channels_last))[0].float()
