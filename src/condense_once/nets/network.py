"""What a network is: layers, a linear classifier, and what the classifier reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.errors import BadOption
from condense_once.nets.weights import draw_uniform

Shape: TypeAlias = tuple[int, int, int]  # (channels, height, width)


class Network(nn.Module, ABC):
    """A classifier whose last layer is linear, so that what it reads, the penultimate features, has a name.

    A subclass builds its layers, `classifier` among them, and defines `features`.
    """

    classifier: nn.Linear

    @abstractmethod
    def features(self, x: Tensor) -> Tensor: ...  # [n, ch, h, w] -> [n, classifier.in_features]

    def forward(self, x: Tensor) -> Tensor:  # [n, ch, h, w] -> [n, classes]
        logits: Tensor = self.classifier(self.features(x))
        return logits

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw all weights anew, in place."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                self.draw_conv(layer, generator)
            elif isinstance(layer, nn.Linear):
                draw_uniform(layer, generator)
            elif isinstance(layer, _BatchNorm | nn.GroupNorm | nn.LayerNorm):
                layer.reset_parameters()  # weight 1, bias 0, running statistics forgotten: nothing is drawn
            elif any(True for _ in layer.parameters(recurse=False)):
                raise BadOption(
                    f"{type(self).__name__} has a {type(layer).__name__}, whose weights Network.initialise cannot draw;"
                    f" override initialise(generator) in {type(self).__name__}."
                )

    def draw_conv(self, conv: nn.Conv2d, generator: torch.Generator) -> None:
        draw_uniform(conv, generator)


@dataclass(frozen=True)
class NetInfo:
    name: str
    summary: str
    build: Callable[[Shape, int], Network]  # (shape, classes); the weights it draws are replaced


def penultimate(module: nn.Module, x: Tensor) -> Tensor:
    """What the last linear layer reads, [n, d]: `features` of a `Network`, found by looking on in any other module.

    Only a `Network` is asked for its `features`: in torchvision's models that name is another thing.
    """
    if isinstance(module, Network):
        return module.features(x)
    seen: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        for layer in module.modules()
        if isinstance(layer, nn.Linear)
    ]
    try:
        module(x)
    finally:
        for hook in hooks:
            hook.remove()
    if not seen:
        raise BadOption(
            f"{type(module).__name__} used no torch.nn.Linear, so it has no penultimate features; end it with one or"
            f" derive it from condense_once.nets.Network."
        )
    return seen[-1].flatten(1)
