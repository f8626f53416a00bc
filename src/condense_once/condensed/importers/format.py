"""A format, what it parses from its files, and what the caller adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.sniff import OpenedFiles
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.soft_labels import LabelKind
from condense_once.condensed.space import SpaceKind, space_kind
from condense_once.data.catalogue import CIFAR10, SOURCES
from condense_once.data.zca import ZcaMethod
from condense_once.registry import canonical

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class ImportOptions:
    """What the caller knows about a file that the file itself may not contain."""

    factor: int | None = None
    space: SpaceKind | None = None
    dataset: str | Path | None = None  # a source, by name or path: class names, mean and std
    mean: Numbers | None = None
    std: Numbers | None = None
    classes: tuple[str, ...] | None = None
    zca_method: ZcaMethod | None = None  # how a ZCA space was made, see docs/format.md
    zca_regularisation: float | None = None
    label_kind: LabelKind | None = None  # what soft labels are: probabilities, logits, or vectors to regress on
    dtype: Literal["float16", "float32"] | None = None  # of spaces other than pixels; by default float32
    name: str | None = None
    method: str | None = None  # it was condensed by, if the format does not determine it
    # For some formats only:
    experiment: int | None = None  # which of several sets in one DC/DSA/DM file
    tile: int | None = None  # side of a tile in a grid image, pixels
    border: int | None = None  # between the tiles of a grid image, pixels
    shrink: int | None = None  # times that the tiles of a grid image were enlarged
    size: int | None = None  # to resize and crop images of a folder to
    images: str | None = None  # name of the images in an .npz or a dict
    labels: str | None = None

    def __post_init__(self) -> None:
        if self.space is not None:
            object.__setattr__(self, "space", space_kind(self.space))
        if isinstance(self.dataset, str) and not Path(self.dataset).exists():
            object.__setattr__(self, "dataset", canonical(self.dataset, SOURCES.names()) or self.dataset)


FORMAT_OPTIONS = ("experiment", "tile", "border", "shrink", "size", "images", "labels")


@dataclass(frozen=True)
class Question:
    """An option that the caller has to pass, and why: "FILE <why>; pass <option> <hint>"."""

    option: str
    why: str
    hint: str = ""


@dataclass(frozen=True)
class ParsedFile:
    """What the files contain; `None` if they do not."""

    images: NDArray[Any]  # [n, ch, h, w] uint8 or floating point
    labels: NDArray[Any]  # [n]
    soft_labels: NDArray[np.float32] | None = None
    label_kind: LabelKind | None = None  # of soft labels; by default inferred from them
    factor: int | None = None
    space: SpaceKind | None = None
    classes: tuple[str, ...] | None = None
    mean: Numbers | None = None
    std: Numbers | None = None
    zca: Mapping[str, Any] | None = None
    extras: Extras | None = None
    renamable: bool = False  # the class names are those of folders, which may be numbers or codes
    main: int = 0  # which of the files holds the images
    questions: tuple[Question, ...] = ()  # if there are any, images and labels are only preliminary
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)  # for the provenance


@dataclass(frozen=True)
class Extras:
    """What only an exported condensed set contains; its rows then keep their order."""

    origin: NDArray[np.int64]
    scores: Mapping[str, NDArray[np.float32]]
    ranking: Ranking | None


@dataclass(frozen=True)
class Format:
    name: str
    summary: str
    recognises: Callable[[OpenedFiles], bool]
    read: Callable[[OpenedFiles, ImportOptions], ParsedFile]
    options: frozenset[str] = frozenset()  # of `FORMAT_OPTIONS`, those that apply
    load: Callable[[OpenedFiles, ImportOptions], CondensedSet] | None = None  # of files that hold a whole set, instead


def cifar_statistics(options: ImportOptions) -> tuple[Numbers | None, Numbers | None]:
    """CIFAR-10's mean and std for CIFAR-100, as IDC, DREAM and MTT use them; otherwise None."""
    if options.dataset == "cifar100" and options.mean is None:
        return CIFAR10.mean, CIFAR10.std
    return None, None


def kernel_statistics(options: ImportOptions, project: str) -> tuple[Numbers | None, Numbers | None, tuple[str, ...]]:
    """Mean and std of KIP and RFAD, with a note: for CIFAR-10 they take the std over all pixels, unlike most projects."""
    if options.dataset != "cifar10" or options.mean is not None:
        return None, None, ()
    note = f"Mean and std are {project}'s own for cifar10; pass `mean` and `std` if yours differ."
    return CIFAR10.mean, (0.2470, 0.2435, 0.2616), (note,)
