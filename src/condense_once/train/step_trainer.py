"""A trainer that takes its batches one by one, and whose state can be saved between any two of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from condense_once.nets import NetChoice, initialise
from condense_once.nets.weights import seeded_globally
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer


class StepTrainer(Trainer):
    """A network and its optimiser. The caller decides what each batch is; see `Trainer` for the parameters."""

    def __init__(
        self, net: NetChoice, data: DataSpec, recipe: Recipe, *, passes: int, compute: ComputeConfig | None = None
    ) -> None:
        super().__init__(net, data, recipe, passes=passes, compute=compute)
        self._optimiser = self._new_optimiser()

    def reinitialise(self, weights: Generator) -> None:
        """Sample all weights again and reset the optimiser."""
        initialise(self.net, weights)
        self._optimiser = self._new_optimiser()

    def update(self, x: Tensor, y: Tensor, sampling: Generator, *, lr: float | None = None) -> None:
        """One SGD step on normalised images; `sampling` is for augmentation, CutMix and dropout."""
        self.net.train()
        if lr is not None:
            self._optimiser.param_groups[0]["lr"] = lr
        with self._layers_sample_from(sampling):
            self._step(x, y, self._optimiser, sampling)

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights, running statistics and the optimiser's momentum."""
        found = {f"net/{name}": to_array(tensor) for name, tensor in self.net.state_dict().items()}
        for name, weight in self.net.named_parameters():
            momentum = self._optimiser.state[weight].get("momentum_buffer") if weight in self._optimiser.state else None
            if momentum is not None:
                found[f"optimiser/{name}"] = to_array(momentum)
        return found

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._optimiser = self._new_optimiser()
        with torch.no_grad():
            for name, tensor in self.net.state_dict().items():
                tensor.copy_(to_tensor(state[f"net/{name}"], tensor))
            for name, weight in self.net.named_parameters():
                if f"optimiser/{name}" in state:
                    momentum = to_tensor(state[f"optimiser/{name}"], weight)
                    self._optimiser.state[weight]["momentum_buffer"] = torch.empty_like(weight).copy_(momentum)

    def _layers_sample_from(self, sampling: Generator) -> AbstractContextManager[None]:
        """Let stochastic layers, such as dropout, use this generator."""
        return seeded_globally(sampling) if self._stochastic else nullcontext()


def to_array(tensor: Tensor) -> NDArray[Any]:
    """In a type that a file can hold; any other than float32, such as counters, as bytes."""
    plain = tensor.detach().cpu().contiguous()
    return plain.numpy() if plain.dtype == torch.float32 else plain.reshape(-1).view(torch.uint8).numpy()


def to_tensor(array: NDArray[Any], like: Tensor) -> Tensor:
    """The inverse of `to_array`; an array of another shape or type is refused, not repeated or converted."""
    if like.dtype == torch.float32 and (array.dtype.name != "float32" or array.shape != tuple(like.shape)):
        raise ValueError(f"{array.dtype} {list(array.shape)} in place of float32 {list(like.shape)}")
    return torch.from_numpy(array.copy()).view(like.dtype).reshape(like.shape)
