"""The augmentation of a recipe, by its name: changes of normalised images, drawn apart from applied."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from condense_once.augment.imagenet import ImageNetAugmentation
from condense_once.augment.strategy import Augmentation
from condense_once.condensed.space import Space


class Augmenter(Protocol):
    def sample(self, n: int, size: tuple[int, int], generator: Generator) -> Any: ...

    def apply(self, x: Tensor, params: Any) -> Tensor: ...


class PixelAugmenter:
    """ImageNet's transforms on normalised images: they are defined on pixels, so the normalisation is undone and redone."""

    def __init__(self, space: Space, size: tuple[int, int]) -> None:
        self._changes = ImageNetAugmentation(size)
        self._mean = torch.tensor(space.mean)[:, None, None]
        self._std = torch.tensor(space.std)[:, None, None]

    def sample(self, n: int, size: tuple[int, int], generator: Generator) -> Any:
        return self._changes.sample(n, size, generator)

    def apply(self, x: Tensor, params: Any) -> Tensor:
        mean, std = self._mean.to(x.device), self._std.to(x.device)
        return (self._changes.apply(x * std + mean, params) - mean) / std


def make_augmenter(name: str, space: Space, size: tuple[int, int]) -> Augmenter:
    """`imagenet`, or a strategy such as `color_crop_flip`, for images of `size` (height, width)."""
    return PixelAugmenter(space, size) if name == "imagenet" else Augmentation.parse(name)
