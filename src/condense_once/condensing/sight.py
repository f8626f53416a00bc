"""What a network sees in images of one class: the gradient of its loss, or the mean of their features.

Either is a list of tensors and a mean over the images, so it can be taken of parts of them and put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from condense_once.condensing.matching.distances import MATCHED
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.errors import BadOption
from condense_once.nets import penultimate

Weights = Mapping[str, Tensor]
Way = Literal["traced", "once", "twice"]  # by `torch.func`; by autograd; by autograd, to be differentiated again


class Sight:
    """Looks at images through a network whose weights and statistics are handed in."""

    def __init__(self, net: nn.Module, recipe: MatchingRecipe, device: torch.device, dtype: torch.dtype) -> None:
        self._net = _Features(net) if recipe.distance == "features" else _Logits(net)
        self._device, self._dtype = device, dtype
        self._matched = () if recipe.distance == "features" else _matched(net, recipe)

    def __call__(self, weights: Weights, x: Tensor, label: Tensor, way: Way) -> Sequence[Tensor]:
        """Of normalised images `x` [n, ch, h, w] of the class `label`."""
        if not self._matched:
            return [self._output(weights, x).mean(0)]
        chosen = {name: weights[name] for name in self._matched}

        def loss(chosen: Weights) -> Tensor:
            return cross_entropy(self._output({**weights, **chosen}, x), label.expand(len(x)))

        if way == "traced":
            return list(torch.func.grad(loss)(chosen).values())
        leaves = {name: weight.detach().requires_grad_() for name, weight in chosen.items()}
        return torch.autograd.grad(loss(leaves), list(leaves.values()), create_graph=way == "twice")

    def _output(self, weights: Weights, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._dtype == torch.bfloat16):
            output: Tensor = functional_call(self._net, {f"net.{name}": w for name, w in weights.items()}, (x,))
        return output.float()


class _Logits(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits


class _Features(_Logits):
    def forward(self, x: Tensor) -> Tensor:
        return penultimate(self.net, x)


def _matched(net: nn.Module, recipe: MatchingRecipe) -> tuple[str, ...]:
    dimensions = MATCHED[recipe.distance]
    names = tuple(name for name, weight in net.named_parameters() if weight.ndim in dimensions)
    if not names:
        raise BadOption(
            f"{type(net).__name__} has no weights of {' or '.join(map(str, dimensions))} dimensions, which {recipe.method}"
            f" matches; choose a network with convolutions, such as --net convnet-d3."
        )
    return names
