"""What a format is, what it finds in a file, and what a caller may add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.sniff import Content
from condense_once.condensed.set import Ranking
from condense_once.condensed.space import SpaceKind
from condense_once.data.catalogue import CIFAR10

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class ImportOptions:
    """What the caller knows of a file and the file may not say. Each field is an option of `condense-once import`."""

    factor: int | None = None
    space: SpaceKind | None = None
    dataset: str | None = None  # a registered source: class names, mean and std
    mean: Numbers | None = None
    std: Numbers | None = None
    classes: tuple[str, ...] | None = None
    whitening: Literal["kip", "kornia"] | None = None  # how a ZCA space was made, see docs/format.md
    regularisation: float | None = None  # of the whitening
    dtype: Literal["float16", "float32"] | None = None  # of spaces other than pixels; float32 if not said
    name: str | None = None
    method: str | None = None  # it was condensed by, if the format does not tell
    # Of some formats only:
    experiment: int | None = None  # which of several sets in one DC/DSA/DM file
    tile: int | None = None  # side of a picture in a grid, pixels
    border: int | None = None  # between the pictures of a grid
    size: int | None = None  # to resize and crop the images of a folder to


OF_SOME_FORMATS = ("experiment", "tile", "border", "size")


@dataclass(frozen=True)
class ParsedFile:
    """What a file itself says; `None` where it says nothing."""

    images: NDArray[Any]  # [n, ch, h, w] uint8 or floating point
    labels: NDArray[Any]  # [n]
    soft_labels: NDArray[np.float32] | None = None
    factor: int | None = None
    space: SpaceKind | None = None
    classes: tuple[str, ...] | None = None
    mean: Numbers | None = None
    std: Numbers | None = None
    zca: Mapping[str, Any] | None = None
    extras: Extras | None = None
    main: int = 0  # which of the files holds the images
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)  # for the provenance


@dataclass(frozen=True)
class Extras:
    """What only a set that was a condensed-set file before can say; its rows are then kept in their order."""

    origin: NDArray[np.int64]
    scores: Mapping[str, NDArray[np.float32]]
    ranking: Ranking | None


@dataclass(frozen=True)
class Format:
    name: str
    summary: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, ImportOptions], ParsedFile]
    options: frozenset[str] = frozenset()  # of `OF_SOME_FORMATS`, those that mean something here


def cifar_statistics(facts: ImportOptions) -> tuple[Numbers | None, Numbers | None]:
    """IDC, DREAM and MTT normalise CIFAR-100 with CIFAR-10's mean and deviation; otherwise this says nothing."""
    if facts.dataset == "cifar100" and facts.mean is None:
        return CIFAR10.mean, CIFAR10.std
    return None, None
