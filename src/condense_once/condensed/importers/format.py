"""What a format is, what it finds in a file, and what a caller may add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.content import Content
from condense_once.condensed.space import SpaceKind


@dataclass(frozen=True)
class Facts:
    """What the caller knows of a file and the file may not say. Each field is an option of `condense-once import`."""

    factor: int | None = None
    space: SpaceKind | None = None
    dataset: str | None = None  # a registered source: class names, mean and std
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    classes: tuple[str, ...] | None = None
    experiment: int | None = None  # which of several sets in one DC/DSA/DM file
    tile: int | None = None  # side of a picture in a grid, pixels
    border: int = 2  # between the pictures of a grid, as torchvision's `save_image` draws it
    whitening: Mapping[str, Any] | None = None  # how a ZCA space was made, see docs/format.md
    dtype: Literal["float16", "float32"] = "float32"  # for spaces other than pixels
    name: str | None = None


@dataclass(frozen=True)
class Found:
    """What a file itself says; `None` where it says nothing."""

    images: NDArray[Any]  # [n, ch, h, w] uint8 or floating point
    labels: NDArray[np.int64]  # [n]
    soft_labels: NDArray[np.float32] | None = None
    factor: int | None = None
    space: SpaceKind | None = None
    classes: tuple[str, ...] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    whitening: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)  # for the provenance


@dataclass(frozen=True)
class Format:
    name: str
    summary: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, Facts], Found]
