"""The interface of a network: penultimate features and a linear classifier on top."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.errors import BadOption
from condense_once.nets.weights import init_uniform


class Network(nn.Module, ABC):
    """A classifier with a linear last layer on penultimate features.

    A subclass builds its layers, including `classifier`, and defines `features`.
    """

    classifier: nn.Linear

    @abstractmethod
    def features(self, x: Tensor) -> Tensor: ...  # [n, ch, h, w] -> [n, classifier.in_features]

    def forward(self, x: Tensor) -> Tensor:  # [n, ch, h, w] -> [n, classes]
        logits: Tensor = self.classifier(self.features(x))
        return logits

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Re-initialise all weights in place."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                self.init_conv(layer, generator)
            elif isinstance(layer, nn.Linear):
                init_uniform(layer, generator)
            elif isinstance(layer, _BatchNorm | nn.GroupNorm | nn.LayerNorm):
                layer.reset_parameters()  # weight 1, bias 0, running statistics reset: no randomness
            elif any(True for _ in layer.parameters(recurse=False)):
                raise BadOption(
                    f"{type(self).__name__} has a {type(layer).__name__}, which Network.initialise cannot initialise;"
                    f" override initialise(generator) in {type(self).__name__}."
                )

    def init_conv(self, conv: nn.Conv2d, generator: torch.Generator) -> None:
        init_uniform(conv, generator)


def penultimate(module: nn.Module, x: Tensor) -> Tensor:
    """The input of the last linear layer, [n, d]: `features` of a `Network`, captured by a hook in any other module.

    Only of a `Network`, as `features` means something else in torchvision's models.
    """
    return module.features(x) if isinstance(module, Network) else features_and_logits(module, x)[0]


def features_and_logits(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Penultimate features [n, d] and outputs [n, classes], from one forward pass."""
    if isinstance(module, Network):
        features = module.features(x)
        return features, module.classifier(features)
    seen: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        for layer in module.modules()
        if isinstance(layer, nn.Linear)
    ]
    try:
        logits: Tensor = module(x)
    finally:
        for hook in hooks:
            hook.remove()
    if not seen:
        raise BadOption(
            f"{type(module).__name__} uses no torch.nn.Linear, so it has no penultimate features; end it with one or"
            f" derive it from condense_once.nets.Network."
        )
    return seen[-1].flatten(1), logits
