"""The condensed set: cells with labels, and everything one has to know to use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.mosaic import cell_size, cut, enlarge, join, patch_sources
from condense_once.condensed.space import Space
from condense_once.errors import BadFile, BadOption

Rows = slice | NDArray[Any]
MAX_CLASSES = 65_536  # labels are stored in 16 bits


@dataclass(frozen=True)
class Ranking:
    """The rule by which the rows of a set are ordered, best first."""

    metric: str
    prefer: Literal["easy", "hard"] = "easy"
    balanced: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.prefer not in ("easy", "hard"):
            raise BadOption(f"A ranking prefers easy or hard patches, not {self.prefer!r}.")


@dataclass(frozen=True)
class CondensedSet:
    """Cells with labels. A row is one patch; rows of a ranked set are stored best first.

    >>> import numpy as np
    >>> mosaics = np.zeros((4, 3, 32, 32), np.uint8)
    >>> space = Space("pixels", mean=(0.5,) * 3, std=(0.25,) * 3)
    >>> made = CondensedSet.from_mosaics(mosaics, np.array([1, 0, 1, 0]), factor=2, space=space, classes=("cat", "dog"))
    >>> len(made), made.cells.shape, made.patches().shape
    (16, (16, 3, 16, 16), (16, 3, 32, 32))
    """

    cells: NDArray[Any]  # [n, ch, sh, sw] uint8 in pixel space, float16 or float32 elsewhere
    labels: NDArray[np.int64]  # [n]; of a set with soft labels, the class of the largest entry
    classes: tuple[str, ...]
    size: tuple[int, int]  # height and width of a patch
    factor: int
    space: Space
    origin: NDArray[np.int64]  # [n] the patch's number in the set as it was condensed
    soft_labels: NDArray[np.float32] | None = None  # [n, C]
    scores: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # one number per patch and metric
    ranking: Ranking | None = None
    name: str = "unnamed"
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if problem := next(self._problems(), None):
            raise BadFile(problem)

    def __repr__(self) -> str:
        channels, (height, width) = self.cells.shape[1], self.size
        ranked = "" if self.ranking is None else f", ranked by {self.ranking.metric}"
        shape = f"{len(self)} patches {channels}×{height}×{width}"
        return f"<CondensedSet {self.name}: {shape}, factor {self.factor}, {len(self.classes)} classes{ranked}>"

    @classmethod
    def from_mosaics(
        cls,
        mosaics: NDArray[Any],
        labels: NDArray[Any],
        *,
        factor: int,
        space: Space,
        classes: tuple[str, ...],
        soft_labels: NDArray[np.float32] | None = None,
        name: str = "unnamed",
        provenance: Mapping[str, Any] | None = None,
    ) -> CondensedSet:
        """Cut stored images `[n, ch, h, w]` into cells, in the numbering of `condense_once.condensed.mosaic`."""
        size = (mosaics.shape[2], mosaics.shape[3])
        cell_size(size, factor)  # says so, before anything is made, if the factor leaves no pixels
        grey = np.full((1, mosaics.shape[1], 1, 1), 0.5, np.float32)  # IDC pads with mid-grey, in pixels
        fill: NDArray[Any] = np.array(128) if mosaics.dtype == np.uint8 else space.from_pixels(grey).ravel()
        images, cells = patch_sources(labels, factor)
        return cls(
            cells=cut(mosaics, factor, fill)[cells, images],
            labels=labels[images].astype(np.int64),
            classes=classes,
            size=size,
            factor=factor,
            space=space,
            origin=np.arange(len(images)),
            soft_labels=None if soft_labels is None else soft_labels[images],
            name=name,
            provenance=provenance or {},
        )

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def channels(self) -> int:
        return int(self.cells.shape[1])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a patch."""
        return (self.channels, *self.size)

    def counts(self) -> NDArray[np.int64]:
        """Patches in each class, `[C]`."""
        return np.bincount(self.labels, minlength=len(self.classes))

    def patches(self, rows: Rows = slice(None)) -> NDArray[np.float32]:
        """Decoded patches `[k, ch, h, w]` in the set's own value space (pixels on the scale 0…1)."""
        cells = self.cells[rows].astype(np.float32)
        return enlarge(cells / np.float32(255) if self.space.kind == "pixels" else cells, self.size)

    def inputs(self, rows: Rows = slice(None)) -> NDArray[np.float32]:
        """Decoded patches as a network wants them: normalised exactly once."""
        return self.space.to_network(self.patches(rows))

    def take(self, rows: Rows) -> CondensedSet:
        """The set of these rows only, in this order; scores and origins come along."""
        return replace(
            self,
            cells=self.cells[rows],
            labels=self.labels[rows],
            origin=self.origin[rows],
            soft_labels=None if self.soft_labels is None else self.soft_labels[rows],
            scores={metric: values[rows] for metric, values in self.scores.items()},
        )

    def mosaics(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Re-pack the cells into stored images `[k, ch, h, w]` and their labels, in the set's own value space.

        Each class fills its own mosaics in the order of its origins, so that a whole set comes back as it was condensed, even
        if it was ranked since. A class whose count is no multiple of factor² cannot be packed.
        """
        per_image = self.factor**2
        images, labels = [], []
        for label, count in enumerate(self.counts()):
            if count % per_image:
                raise BadOption(
                    f"Class {self.classes[label]!r} has {count} patches, which do not fill mosaics of {per_image} cells;"
                    f" export patches instead, or keep a multiple of {per_image} in every class."
                )
            if count:
                members = np.flatnonzero(self.labels == label)
                cells = self.cells[members[np.argsort(self.origin[members], kind="stable")]]
                images.append(join(cells.reshape(per_image, -1, *cells.shape[1:]), self.factor, self.size))
                labels.append(np.full(count // per_image, label, np.int64))
        return np.concatenate(images), np.concatenate(labels)

    def _problems(self) -> Iterator[str]:
        """What is wrong with the arrays, as sentences, each of which may take those before it to be right."""
        count = len(self.cells)
        if self.cells.ndim != 4 or count == 0 or self.cells.shape[1] not in (1, 3):
            yield f"Cells must be [n, 1 or 3 channels, height, width] with n > 0, not {list(self.cells.shape)}."
        expected = ("uint8",) if self.space.kind == "pixels" else ("float16", "float32")
        if self.cells.dtype.name not in expected:
            yield f"Cells in {self.space.kind} space are stored as {' or '.join(expected)}, not {self.cells.dtype}."
        if self.cells.shape[2:] != cell_size(self.size, self.factor):
            yield f"Cells of {list(self.cells.shape[2:])} do not fit images of {list(self.size)} with factor {self.factor}."
        if len(self.space.mean) != self.channels:
            yield f"{self.channels} channels need as many means, not {len(self.space.mean)}."
        if not 0 < len(self.classes) <= MAX_CLASSES or len(set(self.classes)) != len(self.classes):
            yield f"Class names must be 1 to {MAX_CLASSES} different ones."
        if unprintable := [name for name in (self.name, *self.classes) if not name or not name.isprintable()]:
            yield f"The name of a set and of its classes must be printable, not {unprintable[0]!a}."
        if self.labels.shape != (count,) or self.origin.shape != (count,):
            yield f"{count} cells need as many labels and origins."
        if self.labels.min() < 0 or self.labels.max() >= len(self.classes):
            yield f"Labels run from {self.labels.min()} to {self.labels.max()}, but there are {len(self.classes)} classes."
        if self.origin.min() < 0 or self.origin.max() >= 2**32:
            yield "Origins must be numbers of 32 bits."
        if self.soft_labels is not None and self.soft_labels.shape != (count, len(self.classes)):
            yield f"Soft labels must be [{count}, {len(self.classes)}], not {list(self.soft_labels.shape)}."
        for metric, values in self.scores.items():
            if values.shape != (count,):
                yield f"Scores of {metric!r} must be one per patch ({count}), not {list(values.shape)}."
        floats = {"cells": self.cells, "soft labels": self.soft_labels, **self.scores}
        for what, array in floats.items():
            if array is not None and array.dtype.kind == "f" and not np.isfinite(array).all():
                yield f"The {what} hold values that are not finite numbers."
