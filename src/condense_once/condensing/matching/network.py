"""The network that images are matched by: drawn anew, taught in between, kept in checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.augment import SingleAugmentation
from condense_once.condensed.space import Space
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.nets import NetChoice, Shape, initialise, make_net, multiply_adds
from condense_once.nets.weights import seeded_globally
from condense_once.train.hardware import ComputeConfig
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer

Arrays = Mapping[str, NDArray[Any]]


class Learner(Trainer):
    """A trainer that is given its batches one by one."""

    def __init__(
        self,
        net: NetChoice,
        shape: Shape,
        classes: int,
        recipe: MatchingRecipe,
        space: Space,
        *,
        passes: int,
        compute: ComputeConfig | None = None,
    ) -> None:
        lesson = Recipe(
            epochs=1,
            batch=recipe.net_batch,
            lr=recipe.net_rate,
            momentum=recipe.net_momentum,
            weight_decay=recipe.net_decay,
            augmentation=recipe.net_augmentation,
            cutmix=recipe.net_cutmix,
        )
        super().__init__(net, DataSpec(shape, classes, space), lesson, passes=passes, compute=compute)
        # As its maker makes it: `torch.func` cannot be traced through what a trainer puts in for speed.
        self.plain = make_net(net, shape, classes, generator=torch.Generator().manual_seed(0)).eval()
        self.work = multiply_adds(self.plain, shape)  # of one image
        self.plain.to(self.device)
        if recipe.one_change:
            self._augmenter = SingleAugmentation.parse(recipe.net_augmentation)
        self._norms = [layer for layer in self.net.modules() if isinstance(layer, _BatchNorm)]
        self._optimiser = self._new_optimiser()

    def start(self, weights: Generator) -> None:
        """Draw all weights anew and forget what the optimiser had gathered."""
        initialise(self.net, weights)
        self._optimiser = self._new_optimiser()

    def state(self) -> dict[str, Tensor]:
        """Weights and running statistics, by the names that they have in `plain`, too."""
        named = (*self.net.named_parameters(), *self.net.named_buffers())
        return {name: tensor.detach() for name, tensor in named}

    def learn(self, x: Tensor, y: Tensor, draws: Generator) -> None:
        """One step on a batch of normalised images; `draws` are for augmentation, CutMix and layers that draw."""
        self.net.train()
        with self._drawing(draws):
            self._step(x, y, self._optimiser, draws)

    @property
    def has_batch_norm(self) -> bool:
        return bool(self._norms)

    def settle_statistics(self, x: Tensor, draws: Generator) -> None:
        """Let batch norm count by these images alone while images are matched, as DC does."""
        self.net.train()
        with self._drawing(draws), _momentum(self._norms, 1.0), torch.no_grad():
            self.net(x)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights, running statistics and the optimiser's momentum."""
        found = {f"net/{name}": _array(tensor) for name, tensor in self.net.state_dict().items()}
        for name, weight in self.net.named_parameters():
            momentum = self._optimiser.state[weight].get("momentum_buffer") if weight in self._optimiser.state else None
            if momentum is not None:
                found[f"optimiser/{name}"] = _array(momentum)
        return found

    def restore(self, arrays: Arrays) -> None:
        """Go back to the weights, statistics and momentum that `arrays` gave."""
        self._optimiser = self._new_optimiser()
        with torch.no_grad():
            for name, tensor in self.net.state_dict().items():
                tensor.copy_(_tensor(arrays[f"net/{name}"], tensor))
            for name, weight in self.net.named_parameters():
                if f"optimiser/{name}" in arrays:
                    held = _tensor(arrays[f"optimiser/{name}"], weight)
                    self._optimiser.state[weight]["momentum_buffer"] = torch.empty_like(weight).copy_(held)

    def _drawing(self, draws: Generator) -> AbstractContextManager[None]:
        """In which layers that draw do so by these draws."""
        return seeded_globally(draws) if self._stochastic else nullcontext()


@contextmanager
def _momentum(norms: list[_BatchNorm], momentum: float) -> Iterator[None]:
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = momentum
    try:
        yield
    finally:
        for norm, value in zip(norms, before, strict=True):
            norm.momentum = value


def _array(tensor: Tensor) -> NDArray[Any]:
    """In a type that the file knows; any other than float32, such as counters, as bytes."""
    plain = tensor.detach().cpu().contiguous()
    return plain.numpy() if plain.dtype == torch.float32 else plain.reshape(-1).view(torch.uint8).numpy()


def _tensor(array: NDArray[Any], like: Tensor) -> Tensor:
    """What `_array` made an array of."""
    return torch.from_numpy(array.copy()).view(like.dtype).reshape(like.shape)
