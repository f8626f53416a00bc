"""DenseNet-BC for CIFAR, YOCO's third architecture: each layer sees the feature maps of all earlier layers in its block."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from condense_once.errors import BadOption
from condense_once.nets.network import Network
from condense_once.nets.registry import Shape


class DenseLayer(nn.Module):
    """A 1×1 bottleneck and a 3×3 convolution, whose `growth` new maps are concatenated to the input."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            *_norm_relu(inputs),
            nn.Conv2d(inputs, 4 * growth, 1, bias=False),
            *_norm_relu(4 * growth),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.new(x)], 1)


class DenseNet(Network):
    """Dense blocks; between two blocks the number of maps and their sides are halved."""

    def __init__(
        self, shape: Shape, classes: int, *, growth: int = 12, blocks: tuple[int, ...] = (6, 12, 24, 16)
    ) -> None:
        super().__init__()
        least = 2 ** (len(blocks) - 1)
        if min(shape[1:]) < least:
            raise BadOption(
                f"This DenseNet needs images of at least {least}×{least} pixels, not {shape[1]}×{shape[2]}."
            )
        maps = 2 * growth
        layers: list[nn.Module] = [nn.Conv2d(shape[0], maps, 3, padding=1, bias=False)]
        for block, depth in enumerate(blocks):
            if block > 0:
                # The paper pools last; pooling commutes with a 1×1 convolution, and pooling first costs a quarter.
                layers += [*_norm_relu(maps), nn.AvgPool2d(2), nn.Conv2d(maps, maps // 2, 1, bias=False)]
                maps //= 2
            layers += [DenseLayer(maps + layer * growth, growth) for layer in range(depth)]
            maps += depth * growth
        self.layers = nn.Sequential(*layers, *_norm_relu(maps))
        self.classifier = nn.Linear(maps, classes)

    def features(self, x: Tensor) -> Tensor:
        maps: Tensor = self.layers(x)
        return maps.mean((2, 3))


def _norm_relu(channels: int) -> tuple[nn.BatchNorm2d, nn.ReLU]:
    return nn.BatchNorm2d(channels), nn.ReLU()
