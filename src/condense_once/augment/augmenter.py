"""The augmentation of a recipe by its name, applied to normalised images."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from condense_once.augment.imagenet import ImageNetAugmentation
from condense_once.augment.names import SINGLE_OP
from condense_once.augment.strategy import Augmentation, SingleAugmentation
from condense_once.condensed.space import Space


class Augmenter(Protocol):
    def sample(self, n: int, size: tuple[int, int], generator: Generator) -> Any: ...

    def apply(self, x: Tensor, params: Any) -> Tensor: ...


class PixelAugmenter:
    """ImageNet's transforms on normalised images: they are defined on pixels, so images are denormalised and renormalised."""

    def __init__(self, space: Space, size: tuple[int, int]) -> None:
        self._transforms = ImageNetAugmentation(size)
        self._mean = torch.tensor(space.mean)[:, None, None]
        self._std = torch.tensor(space.std)[:, None, None]

    def sample(self, n: int, size: tuple[int, int], generator: Generator) -> Any:
        return self._transforms.sample(n, size, generator)

    def apply(self, x: Tensor, params: Any) -> Tensor:
        mean, std = self._mean.to(x.device), self._std.to(x.device)
        return (self._transforms.apply(x * std + mean, params) - mean) / std


def make_augmenter(name: str, space: Space, size: tuple[int, int]) -> Augmenter:
    """`imagenet`, a strategy such as `color_crop_flip`, or one that is read as DSA does, such as `dsa:color_crop_flip`.

    Images are of `size` (height, width).
    """
    if name == "imagenet":
        return PixelAugmenter(space, size)
    names = name.removeprefix(SINGLE_OP)
    return Augmentation.parse(names) if names == name else SingleAugmentation.parse(names)
