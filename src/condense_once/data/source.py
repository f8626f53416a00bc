"""Sources: real labelled images with a train and a test split.

A split has its labels in memory and returns images by row, so that a folder of a million photos and an array in memory
look the same to a training loop. `SOURCES` holds what is publicly known of each dataset (class names, normalisation,
size); a path works wherever a source's name does, see `condense_once.data.open`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadFile, BadOption
from condense_once.normalisation import is_normalisation
from condense_once.registry import Registry
from condense_once.text import plural

SplitName = Literal["train", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "test")


class Split(Protocol):
    """The train or test images of a source; rows can be taken in any order, any number of times."""

    @property
    def labels(self) -> NDArray[np.int64]: ...  # [n]

    @property
    def shape(self) -> tuple[int, int, int]: ...  # (channels, height, width)

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]: ...  # [k, channels, height, width]


@dataclass(frozen=True)
class ArraySplit:
    """A split whose images are one array, in memory or memory-mapped."""

    images: NDArray[np.uint8]  # [n, ch, h, w]
    labels: NDArray[np.int64]  # [n]

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim != 4 or self.images.shape[1] not in (1, 3):
            raise BadFile(
                f"Images must be uint8 [n, 1 or 3 channels, height, width], not {self.images.dtype}"
                f" {list(self.images.shape)}."
            )
        if self.labels.shape != (len(self.images),):
            raise BadFile(f"{len(self.images)} images need as many labels, not {list(self.labels.shape)}.")

    @property
    def shape(self) -> tuple[int, int, int]:
        _, channels, height, width = self.images.shape
        return channels, height, width

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
        return self.images[rows]


@dataclass(frozen=True)
class Source:
    name: str
    classes: tuple[str, ...]
    mean: tuple[float, ...]  # per channel, of pixels in 0…1
    std: tuple[float, ...]
    splits: Mapping[SplitName, Split]

    def __repr__(self) -> str:
        splits = ", ".join(f"{plural(len(split.labels), f'{name} image')}" for name, split in self.splits.items())
        shape = "×".join(map(str, next(iter(self.splits.values())).shape))
        return f"<Source {self.name}: {splits} {shape}, {plural(len(self.classes), 'class')}>"

    def __post_init__(self) -> None:
        if unprintable := [name for name in (self.name, *self.classes) if not name or not name.isprintable()]:
            raise BadFile(f"{self.name!a} has a name or class name that is not printable: {unprintable[0]!a}.")
        shapes = {name: split.shape for name, split in self.splits.items()}
        if len(set(shapes.values())) != 1:
            raise BadFile(
                f"{self.name} needs a train or a test split with images of one shape, but has {shapes or 'none'}."
            )
        channels = next(iter(shapes.values()))[0]
        if not is_normalisation(self.mean, self.std) or len(self.mean) != channels or len(self.std) != channels:
            raise BadFile(
                f"The {channels} channels of {self.name} need a mean and a positive std each, not {self.mean}"
                f" and {self.std}."
            )
        for name, split in self.splits.items():
            if len(split.labels) == 0:
                raise BadFile(f"The {name} split of {self.name} has no images.")
            low, high = int(split.labels.min()), int(split.labels.max())
            if low < 0 or high >= len(self.classes):
                raise BadFile(
                    f"The {name} split of {self.name} has labels {low}…{high}, but there are only"
                    f" {len(self.classes)} class names."
                )

    def split(self, name: SplitName) -> Split:
        if name not in self.splits:
            raise BadOption(
                f"{self.name} has no {name} split, only {' and '.join(self.splits)}; pass another source, or divide it: a"
                " folder of images by sub-folders called train and test, arrays by x_train and x_test."
            )
        return self.splits[name]

    @property
    def train(self) -> Split:
        return self.split("train")

    @property
    def test(self) -> Split:
        return self.split("test")


@dataclass(frozen=True)
class SourceInfo:
    """What is known of a dataset without a copy of it and, for your own datasets, how to load it.

    With `load`, any dataset can be opened by name. Another distribution adds the entry as an entry point in the group
    `condense_once.sources`.

    >>> from condense_once.data.open import open_source
    >>> def two_dots() -> Source:
    ...     dots = ArraySplit(np.array([[[[0]]], [[[255]]]], np.uint8), np.array([0, 1]))
    ...     return Source("two-dots", ("dark", "bright"), (0.5,), (0.5,), {"train": dots})
    >>> info = SourceInfo("two-dots", "a dark dot and a bright one", ("dark", "bright"), (1, 1, 1), (0.5,), (0.5,), two_dots)
    >>> with SOURCES.registered(info):  # or, for good: SOURCES.add(info)
    ...     open_source("two-dots").train.take(slice(1, 2)).item()
    255
    """

    name: str
    summary: str
    classes: tuple[str, ...]
    shape: tuple[int, int, int]  # (channels, height, width)
    mean: tuple[float, ...]
    std: tuple[float, ...]
    load: Callable[[], Source] | None = None  # else it is in the data folder, once downloaded


SOURCES: Registry[SourceInfo] = Registry("sources")


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder of downloaded sources: `folder`, `$CONDENSE_ONCE_DATA`, or the user's cache."""
    if folder is not None:
        return Path(folder)
    if named := os.environ.get("CONDENSE_ONCE_DATA"):
        return Path(named)
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "condense-once"
    try:
        return Path.home() / ".cache" / "condense-once"
    except RuntimeError as error:  # in a container, a user may have neither $HOME nor a passwd entry
        raise BadOption(
            "There is no home folder to keep sources in; pass `data_dir` or set $CONDENSE_ONCE_DATA."
        ) from error
