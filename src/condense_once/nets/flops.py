"""The compute cost of a network."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from condense_once.nets.registry import Shape


def multiply_adds(module: nn.Module, shape: Shape) -> int:
    """Multiply-adds of the convolutions and linear layers in the forward pass of one image.

    >>> multiply_adds(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Flatten(), nn.Linear(256, 10)), (3, 8, 8))
    9472
    """
    total = 0

    def count(layer: nn.Module, _: Any, output: Tensor) -> None:
        nonlocal total
        total += output[0].numel() * math.prod(layer.get_parameter("weight").shape[1:])

    hooks = [layer.register_forward_hook(count) for layer in module.modules() if isinstance(layer, _ConvNd | nn.Linear)]
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            module(torch.zeros(1, *shape))
    finally:
        module.train(was_training)
        for hook in hooks:
            hook.remove()
    return total
