"""Images to train on: one tensor where they fit in memory, else read and normalised whenever they are needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import Source
from condense_once.nets import Shape

HELD = 1 << 28  # bytes of images, as floats, that are kept in memory; reading more costs little beside a training step
SLICE = 256  # images that are read at a time


class Images(Protocol):
    """Images by their rows; a tensor `[n, ch, h, w]` is that already."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Tensor: ...  # a slice or a tensor of row numbers -> [k, ch, h, w]


@dataclass(frozen=True)
class StreamedImages:
    """Images that lie elsewhere, say in a mapped file; only the rows asked for are in memory.

    >>> pictures = StreamedImages(9, lambda rows: np.arange(9, dtype=np.float32)[rows].reshape(-1, 1, 1, 1))
    >>> len(pictures), pictures[torch.tensor([7, 2])].flatten().tolist()
    (9, [7.0, 2.0])
    """

    count: int
    read: Callable[[slice | NDArray[Any]], NDArray[np.float32]]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        return torch.from_numpy(self.read(rows if isinstance(rows, slice) else rows.cpu().numpy()))


@dataclass(frozen=True)
class ImagesOf:
    """Some rows of other images, numbered anew; nothing is copied."""

    images: Images
    rows: Tensor  # [k]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        return self.images[self.rows[rows if isinstance(rows, slice) else rows.cpu()]]


def hold(images: Images, shape: Shape, most: int | None = None) -> Images:
    """The same images, in memory if they take at most so many bytes there; `HELD` if nothing is said."""
    if 4 * len(images) * math.prod(shape) > (HELD if most is None else most):
        return images
    held = torch.empty(len(images), *shape)
    for at in range(0, len(images), SLICE):  # all at once, making them would take several times their memory
        held[at : at + SLICE] = images[at : at + SLICE]
    return held


@dataclass(frozen=True)
class TrainingData:
    """What a training needs to know, whether it comes from a condensed set or from a source."""

    name: str
    images: Images  # as a network wants them
    labels: Tensor  # [n]
    shape: Shape
    classes: int
    space: Space

    def __len__(self) -> int:
        return len(self.labels)


def training_data(data: CondensedSet | Source, *, held: int = HELD) -> TrainingData:
    """All patches of a set, or the train split of a source; in memory if they take at most `held` bytes there."""
    if isinstance(data, CondensedSet):
        images, labels, shape, space = StreamedImages(len(data), data.inputs), data.labels, data.shape, data.space
    else:
        split, space = data.train, Space("pixels", data.mean, data.std)

        def read(rows: slice | NDArray[Any]) -> NDArray[np.float32]:
            return space.to_network(split.take(rows).astype(np.float32) / np.float32(255))

        images, labels, shape = StreamedImages(len(split.labels), read), split.labels, split.shape
    return TrainingData(
        name=data.name,
        images=hold(images, shape, held),
        labels=torch.tensor(labels),  # a copy: a mapped file may not be written to, and torch would warn of that
        shape=shape,
        classes=len(data.classes),
        space=space,
    )
