"""ResNets of basic blocks: IDC's ResNet10-AP, YOCO's ResNet-10 and the usual ResNet-18."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from condense_once.errors import BadOption
from condense_once.nets.convnet import instance_norm
from condense_once.nets.network import Network
from condense_once.nets.registry import Shape
from condense_once.nets.weights import empty_for

Norm: TypeAlias = Callable[[int], nn.Module]
Halving: TypeAlias = Literal["stride", "pool"]  # how a block downsamples: strided convolutions or average pooling


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut, which is a 1×1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, *, shrink: int, norm: Norm, halving: Halving) -> None:
        super().__init__()
        stride = shrink if halving == "stride" else 1
        pool = nn.AvgPool2d(shrink) if halving == "pool" and shrink > 1 else nn.Identity()
        self.residual = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            norm(outputs),
            nn.ReLU(),
            pool,
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            norm(outputs),
        )
        # IDC pools after the 1×1 convolution; the two commute, and pooling first costs a quarter.
        self.shortcut = (
            nn.Identity()
            if shrink == 1 and inputs == outputs
            else nn.Sequential(pool, nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.residual(x) + self.shortcut(x))


class ResNet(Network):
    """A stem, four stages of basic blocks at 1, 1/2, 1/4 and 1/8 of its resolution, global average pooling, a linear layer.

    `stem` outputs as many channels as the first stage has.
    """

    def __init__(
        self,
        stem: nn.Module,
        widths: tuple[int, int, int, int],
        classes: int,
        *,
        blocks: int,
        norm: Norm = nn.BatchNorm2d,
        halving: Halving = "stride",
    ) -> None:
        super().__init__()
        self.stem = stem
        stages: list[nn.Module] = []
        inputs = widths[0]
        for stage, outputs in enumerate(widths):
            for block in range(blocks):
                shrink = 2 if stage > 0 and block == 0 else 1
                stages.append(BasicBlock(inputs, outputs, shrink=shrink, norm=norm, halving=halving))
                inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.classifier = nn.Linear(inputs, classes)

    def features(self, x: Tensor) -> Tensor:
        maps: Tensor = self.stages(self.stem(x))
        return maps.mean((2, 3))

    def init_conv(self, conv: nn.Conv2d, generator: torch.Generator) -> None:
        """He initialisation by fan-out, as in the original ResNets: N(0, 2 / (k·k·outputs))."""
        std = (2 / (conv.kernel_size[0] * conv.kernel_size[1] * conv.out_channels)) ** 0.5
        conv.weight.copy_(empty_for(conv.weight, generator).normal_(0, std, generator=generator))


def resnet10_ap(shape: Shape, classes: int) -> ResNet:
    """IDC's ResNet10-AP: one block per stage, instance norm, average pooling instead of strides."""
    channels, *sides = shape
    if min(sides) < 16:  # the last stage would have one pixel, which instance norm turns to 0
        raise BadOption(f"ResNet10-AP needs images of at least 16×16 pixels, not {sides[0]}×{sides[1]}.")
    kernel, pool = (7, 4) if min(sides) > 128 else (3, 2) if min(sides) > 64 else (3, 1)  # IDC's three input sizes
    stem = nn.Sequential(
        nn.Conv2d(channels, 64, kernel, padding=kernel // 2, bias=False),
        instance_norm(64),
        nn.ReLU(),
        nn.AvgPool2d(pool) if pool > 1 else nn.Identity(),
    )
    return ResNet(stem, (64, 128, 256, 512), classes, blocks=1, norm=instance_norm, halving="pool")


def resnet10(shape: Shape, classes: int) -> ResNet:
    """YOCO's second architecture on CIFAR: ResNet-10 at half the usual width, with batch norm."""
    return ResNet(_small_stem(shape[0], 32), (32, 64, 128, 256), classes, blocks=1)


def resnet10_imagenet(shape: Shape, classes: int) -> ResNet:
    """ResNet-10 at the usual width for large images: ResNet-18 with one block per stage."""
    return ResNet(_large_stem(shape[0], 64), (64, 128, 256, 512), classes, blocks=1)


def resnet18(shape: Shape, classes: int) -> ResNet:
    """ResNet-18 as used on CIFAR: the stem is one 3×3 convolution at full resolution."""
    return ResNet(_small_stem(shape[0], 64), (64, 128, 256, 512), classes, blocks=2)


def resnet18_imagenet(shape: Shape, classes: int) -> ResNet:
    """ResNet-18 as published: the stem reduces the resolution to a quarter."""
    return ResNet(_large_stem(shape[0], 64), (64, 128, 256, 512), classes, blocks=2)


def _small_stem(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


def _large_stem(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    )
