"""The matching network: re-initialised for each iteration, trained between steps, saved in checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.augment import SingleAugmentation
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.nets import NetChoice, initialise, make_net, multiply_adds
from condense_once.nets.weights import seeded_globally
from condense_once.train.hardware import ComputeConfig
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer


class MatchingNetwork(Trainer):
    """A trainer that takes its batches one by one."""

    def __init__(
        self,
        net: NetChoice,
        data: DataSpec,
        recipe: MatchingRecipe,
        *,
        passes: int,
        compute: ComputeConfig | None = None,
    ) -> None:
        update = Recipe(
            epochs=1,
            batch=recipe.net_batch,
            lr=recipe.net_lr,
            momentum=recipe.net_momentum,
            weight_decay=recipe.net_weight_decay,
            augmentation=recipe.net_augmentation,
            cutmix=recipe.net_cutmix,
        )
        super().__init__(net, data, update, passes=passes, compute=compute)
        # Without native kernels: `torch.func` cannot be traced through them.
        self.plain = make_net(net, data.shape, data.classes, generator=torch.Generator().manual_seed(0)).eval()
        self.multiply_adds = multiply_adds(self.plain, data.shape)  # per image
        self.plain.to(self.device)
        if recipe.single_op:
            self._augmenter = SingleAugmentation.parse(recipe.net_augmentation)
        self._norms = [layer for layer in self.net.modules() if isinstance(layer, _BatchNorm)]
        self._optimiser = self._new_optimiser()

    def reinitialise(self, weights: Generator) -> None:
        """Sample all weights again and reset the optimiser."""
        initialise(self.net, weights)
        self._optimiser = self._new_optimiser()

    def update(self, x: Tensor, y: Tensor, sampling: Generator) -> None:
        """One SGD step on normalised images; `sampling` is for augmentation, CutMix and dropout."""
        self.net.train()
        with self._layers_sample_from(sampling):
            self._step(x, y, self._optimiser, sampling)

    @property
    def has_batch_norm(self) -> bool:
        return bool(self._norms)

    def calibrate_batch_norm(self, x: Tensor, sampling: Generator) -> None:
        """Replace the running statistics by those of these images, as DC does before matching."""
        self.net.train()
        with self._layers_sample_from(sampling), _momentum(self._norms, 1.0), torch.no_grad():
            self.net(x)

    def weights(self) -> dict[str, Tensor]:
        """Parameters and buffers, by the names that they have in `plain`, too."""
        named = (*self.net.named_parameters(), *self.net.named_buffers())
        return {name: tensor.detach() for name, tensor in named}

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights, running statistics and the optimiser's momentum."""
        found = {f"net/{name}": _to_array(tensor) for name, tensor in self.net.state_dict().items()}
        for name, weight in self.net.named_parameters():
            momentum = self._optimiser.state[weight].get("momentum_buffer") if weight in self._optimiser.state else None
            if momentum is not None:
                found[f"optimiser/{name}"] = _to_array(momentum)
        return found

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._optimiser = self._new_optimiser()
        with torch.no_grad():
            for name, tensor in self.net.state_dict().items():
                tensor.copy_(_to_tensor(state[f"net/{name}"], tensor))
            for name, weight in self.net.named_parameters():
                if f"optimiser/{name}" in state:
                    momentum = _to_tensor(state[f"optimiser/{name}"], weight)
                    self._optimiser.state[weight]["momentum_buffer"] = torch.empty_like(weight).copy_(momentum)

    def _layers_sample_from(self, sampling: Generator) -> AbstractContextManager[None]:
        """Let stochastic layers, such as dropout, use this generator."""
        return seeded_globally(sampling) if self._stochastic else nullcontext()


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


def _to_array(tensor: Tensor) -> NDArray[Any]:
    """In a type that the file has; any other than float32, such as counters, as bytes."""
    plain = tensor.detach().cpu().contiguous()
    return plain.numpy() if plain.dtype == torch.float32 else plain.reshape(-1).view(torch.uint8).numpy()


def _to_tensor(array: NDArray[Any], like: Tensor) -> Tensor:
    """The inverse of `_to_array`."""
    return torch.from_numpy(array.copy()).view(like.dtype).reshape(like.shape)
