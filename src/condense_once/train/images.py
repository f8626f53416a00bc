"""Images to train on: one tensor if they fit in memory, otherwise read and normalised as needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import LabelUse, Loss, targets_of
from condense_once.condensed.space import Space
from condense_once.data.source import Source
from condense_once.nets import Shape

MEMORY_LIMIT = 1 << 28  # bytes of float images kept in memory; reading more costs little beside a training step
CHUNK = 256  # images read at a time


class Images(Protocol):
    """Images by row; a tensor `[n, ch, h, w]` is one."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Tensor: ...  # a slice or a tensor of row numbers -> [k, ch, h, w]


@dataclass(frozen=True)
class StreamedImages:
    """Images that are stored elsewhere, such as in a memory-mapped file; only the requested rows are read.

    >>> images = StreamedImages(9, lambda rows: np.arange(9, dtype=np.float32)[rows].reshape(-1, 1, 1, 1))
    >>> len(images), images[torch.tensor([7, 2])].flatten().tolist()
    (9, [7.0, 2.0])
    """

    count: int
    read: Callable[[slice | NDArray[Any]], NDArray[np.float32]]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        return torch.from_numpy(self.read(rows if isinstance(rows, slice) else rows.cpu().numpy()))


@dataclass(frozen=True)
class ImageSubset:
    """Some rows of other images, renumbered from 0 without copying."""

    images: Images
    rows: Tensor  # [k]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        return self.images[self.rows[rows if isinstance(rows, slice) else rows.cpu()]]


def to_memory(images: Images, shape: Shape, limit: int | None = None) -> Images:
    """The images as one tensor if that takes at most `limit` bytes, by default `MEMORY_LIMIT`; otherwise unchanged."""
    if 4 * len(images) * math.prod(shape) > (MEMORY_LIMIT if limit is None else limit):
        return images
    tensor = torch.empty(len(images), *shape)
    for at in range(0, len(images), CHUNK):  # reading all at once would take several times the memory
        tensor[at : at + CHUNK] = images[at : at + CHUNK]
    return tensor


@dataclass(frozen=True)
class DataSpec:
    """The kind of images a network is trained on."""

    shape: Shape
    classes: int
    space: Space
    loss: Loss = "cross_entropy"  # that its labels are for

    @classmethod
    def of(cls, data: CondensedSet, loss: Loss = "cross_entropy") -> Self:
        return cls(data.shape, len(data.classes), data.space, loss)


@dataclass(frozen=True)
class TrainingData:
    """Images and labels to train on, from a condensed set or a source."""

    name: str
    images: Images  # normalised
    labels: Tensor  # [n]
    shape: Shape
    classes: int
    space: Space
    soft: Tensor | None = None  # [n, C] targets by soft labels, if these are to be trained on
    loss: Loss = "cross_entropy"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def targets(self) -> Tensor:
        """What a network is trained towards: classes `[n]` or vectors `[n, C]`."""
        return self.labels if self.soft is None else self.soft

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.shape, self.classes, self.space, self.loss)


def training_data(
    data: CondensedSet | Source, *, memory_limit: int | None = None, labels: LabelUse = "hard"
) -> TrainingData:
    """All patches of a set, or the train split of a source; as one tensor if they take at most `memory_limit` bytes.

    With `labels` soft, the targets are the soft labels of a set that has them.
    """
    targets = targets_of(data) if isinstance(data, CondensedSet) and labels == "soft" else None
    if isinstance(data, CondensedSet):
        images, classes, shape, space = StreamedImages(len(data), data.inputs), data.labels, data.shape, data.space
    else:
        split, space = data.train, Space("pixels", data.mean, data.std)

        def read(rows: slice | NDArray[Any]) -> NDArray[np.float32]:
            return space.to_network(split.take(rows).astype(np.float32) / np.float32(255))

        images, classes, shape = StreamedImages(len(split.labels), read), split.labels, split.shape
    return TrainingData(
        name=data.name,
        images=to_memory(images, shape, memory_limit),
        labels=torch.tensor(classes),  # a copy: torch warns of read-only arrays, such as those of a mapped file
        shape=shape,
        classes=len(data.classes),
        space=space,
        soft=None if targets is None else torch.tensor(targets.values),
        loss="cross_entropy" if targets is None else targets.loss,
    )
