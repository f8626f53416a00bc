"""The condensed set: cells with labels, and everything needed to use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condense_once.condensed.mosaic import cell_size, cut, join, patch_sources, upsample
from condense_once.condensed.soft_labels import LABEL_KINDS, LabelKind, LabelUse, infer_kind
from condense_once.condensed.space import Space
from condense_once.errors import BadFile, BadOption
from condense_once.text import plural

if TYPE_CHECKING:  # nothing here needs torch
    from torch import Tensor

    from condense_once.train.patch_dataset import PatchDataset

Rows = slice | NDArray[Any]
MAX_CLASSES = 65_536  # labels are stored in 16 bits
CHUNK = 256  # patches that iteration decodes at a time


NESTED = "nested"  # in place of a metric: the order comes from condensing, not from scores


@dataclass(frozen=True)
class Ranking:
    """The rule by which the rows of a set are ordered, best first."""

    metric: str
    prefer: Literal["easy", "hard"] = "easy"
    balanced: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.prefer not in ("easy", "hard"):
            raise BadOption(f"`prefer` must be easy or hard, not {self.prefer!r}.")

    @property
    def is_nested(self) -> bool:
        """Whether condensing made the order: the first images of every class are a good set, for any number of them."""
        return self.metric == NESTED


class Patch(NamedTuple):
    """A decoded patch, in the value space of its set, and its label."""

    image: NDArray[np.float32]  # [ch, h, w]
    label: int


@dataclass(frozen=True)
class CondensedSet:
    """Cells with labels. A row is one patch; rows of a ranked set are stored best first.

    `data[i]` is a `Patch`; a slice, a boolean mask or an array of rows gives a smaller set; iteration yields patches.

    >>> import numpy as np
    >>> mosaics = np.zeros((4, 3, 32, 32), np.uint8)
    >>> space = Space("pixels", mean=(0.5,) * 3, std=(0.25,) * 3)
    >>> made = CondensedSet.from_mosaics(mosaics, np.array([1, 0, 1, 0]), factor=2, space=space, classes=("cat", "dog"))
    >>> len(made), made.cells.shape, made.patches().shape
    (16, (16, 3, 16, 16), (16, 3, 32, 32))
    >>> made[0].image.shape, made[0].label
    ((3, 32, 32), 0)
    >>> made[made.labels == 1]
    <CondensedSet unnamed-8of16: 8 patches 3×32×32, factor 2, 2 classes>
    """

    cells: NDArray[Any]  # [n, ch, sh, sw] uint8 in pixel space, float16 or float32 otherwise
    labels: NDArray[np.int64]  # [n]; with soft labels, the class of the largest entry
    classes: tuple[str, ...]
    size: tuple[int, int]  # height and width of a patch
    factor: int
    space: Space
    origin: NDArray[np.int64]  # [n] index of each patch in the set as condensed
    soft_labels: NDArray[np.float32] | None = None  # [n, C]
    scores: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # metric → [n]
    ranking: Ranking | None = None
    name: str = "unnamed"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    label_kind: LabelKind | None = None  # of soft labels; by default inferred from them
    label_coding: str = "float32"  # how a file stores soft labels, see `LabelCoding`

    def __post_init__(self) -> None:
        if problem := next(self._problems(), None):
            raise BadFile(problem)
        if self.soft_labels is None:
            object.__setattr__(self, "label_kind", None)
            object.__setattr__(self, "label_coding", "float32")
        elif self.label_kind is None:
            object.__setattr__(self, "label_kind", infer_kind(self.soft_labels))

    def __repr__(self) -> str:
        channels, (height, width) = self.cells.shape[1], self.size
        ranked = "" if self.ranking is None else f", ranked by {self.ranking.metric}"
        ranked = ", nested" if self.is_nested else ranked
        name = self.name if len(self.name) <= 40 else f"{self.name[:39]}…"
        shape = f"{plural(len(self), 'patch')} {channels}×{height}×{width}"
        return f"<CondensedSet {name}: {shape}, factor {self.factor}, {plural(len(self.classes), 'class')}{ranked}>"

    def _repr_html_(self) -> str:
        """Its patches, in a notebook."""
        from condense_once.condensed.notebook import notebook_html  # late: it needs Pillow, which devices may lack

        return notebook_html(self)

    @classmethod
    def from_mosaics(
        cls,
        mosaics: ArrayLike,
        labels: ArrayLike,
        *,
        factor: int,
        space: Space,
        classes: Sequence[str],
        soft_labels: ArrayLike | None = None,
        label_kind: LabelKind | None = None,
        label_coding: str = "float32",
        name: str = "unnamed",
        provenance: Mapping[str, Any] | None = None,
    ) -> CondensedSet:
        """Cut stored images `[n, ch, h, w]` into cells, in the order of `condense_once.condensed.mosaic`.

        Images and labels are arrays, or tensors on any device, with or without gradients.
        """
        mosaics, labels = _as_array(mosaics), _as_array(labels)
        size = (mosaics.shape[2], mosaics.shape[3])
        cell_size(size, factor)  # raises if the factor leaves no pixels
        grey = np.full((1, mosaics.shape[1], 1, 1), 0.5, np.float32)  # IDC pads with mid-grey, in pixels
        fill: NDArray[Any] = np.array(128) if mosaics.dtype == np.uint8 else space.from_pixels(grey).ravel()
        images, cells = patch_sources(labels, factor)
        return cls(
            cells=cut(mosaics, factor, fill)[cells, images],
            labels=labels[images].astype(np.int64),
            classes=tuple(classes),
            size=size,
            factor=factor,
            space=space,
            origin=np.arange(len(images)),
            soft_labels=None if soft_labels is None else _as_array(soft_labels)[images],
            label_kind=label_kind,
            label_coding=label_coding,
            name=name,
            provenance=provenance or {},
        )

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> Patch: ...

    @overload
    def __getitem__(self, rows: slice | Sequence[int] | Sequence[bool] | NDArray[Any]) -> CondensedSet: ...

    def __getitem__(
        self, rows: int | np.integer[Any] | slice | Sequence[int] | Sequence[bool] | NDArray[Any]
    ) -> Patch | CondensedSet:
        if isinstance(rows, slice):
            return self._subset(np.arange(len(self))[rows])
        index = np.asarray(rows, None if np.size(rows) else np.int64)
        if index.dtype.kind not in "biu" or index.ndim > 1 or (index.ndim == 0 and index.dtype.kind == "b"):
            raise TypeError(f"A CondensedSet is indexed by an integer, a slice, a boolean mask or rows, not {rows!r}.")
        if index.ndim:
            return self._subset(np.arange(len(self))[index])
        return Patch(self.patches(index[None])[0], int(self.labels[index]))

    def __iter__(self) -> Iterator[Patch]:
        for start in range(0, len(self), CHUNK):
            rows = slice(start, start + CHUNK)
            yield from map(Patch, self.patches(rows), self.labels[rows].tolist())

    @property
    def channels(self) -> int:
        return int(self.cells.shape[1])

    @property
    def is_nested(self) -> bool:
        """Whether its order comes from condensing, so that it needs no ranking."""
        return self.ranking is not None and self.ranking.is_nested

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a patch."""
        return (self.channels, *self.size)

    def counts(self) -> NDArray[np.int64]:
        """Patches in each class, `[C]`."""
        return np.bincount(self.labels, minlength=len(self.classes))

    def patches(self, rows: Rows = slice(None)) -> NDArray[np.float32]:
        """Decoded patches `[k, ch, h, w]` in the value space of the set (pixels in 0…1)."""
        cells = self.cells[rows].astype(np.float32)
        return upsample(cells / np.float32(255) if self.space.kind == "pixels" else cells, self.size)

    def inputs(self, rows: Rows = slice(None)) -> NDArray[np.float32]:
        """Decoded patches as network inputs: normalised exactly once."""
        return self.space.to_network(self.patches(rows))

    def torch(
        self,
        *,
        augmentation: str | None = None,
        labels: LabelUse | None = None,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> PatchDataset:
        """The patches as a `torch.utils.data.Dataset` of normalised images and targets, see `PatchDataset`."""
        home = import_module("condense_once.train.patch_dataset")  # by name: only this method needs what trains
        dataset: PatchDataset = home.PatchDataset(self, augmentation=augmentation, labels=labels, transform=transform)
        return dataset

    def take(self, rows: Rows) -> CondensedSet:
        """The set of these rows, in this order, with their scores and origins."""
        if not len(self.labels[rows]):
            raise BadOption(f"`rows` select none of the {len(self)} patches; a condensed set needs at least one.")
        return replace(
            self,
            cells=self.cells[rows],
            labels=self.labels[rows],
            origin=self.origin[rows],
            soft_labels=None if self.soft_labels is None else self.soft_labels[rows],
            scores={metric: values[rows] for metric, values in self.scores.items()},
        )

    def as_subset_of(self, total: int) -> CondensedSet:
        """With the name and provenance of a subset of a set of `total` patches, of which this one still has those."""
        if len(self) == total:
            return self
        name = subset_name(self.name, self.ranking, self.provenance, total=total, patches=len(self))
        return replace(self, name=name, provenance=subset_provenance(self.provenance, total))

    def _subset(self, rows: NDArray[np.int64]) -> CondensedSet:
        """These rows, ranked only if they stay in order, and without what was measured of the whole."""
        part = self.take(rows)
        ranking = self.ranking if (np.diff(rows) > 0).all() else None
        return replace(part.as_subset_of(len(self)), ranking=ranking)

    def mosaics(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Re-pack the cells into stored images `[k, ch, h, w]` and their labels, in the value space of the set.

        Each class fills its own mosaics in the order of its origins, so a whole set comes back as it was condensed, even
        if it has been ranked. A class whose count is not a multiple of factor² cannot be packed.
        """
        per_image = self.factor**2
        images, labels = [], []
        for label, count in enumerate(self.counts()):
            if count % per_image:
                raise BadOption(
                    f"Class {self.classes[label]!r} has {plural(int(count), 'patch')}, which cannot fill mosaics of"
                    f" {per_image} cells; export patches instead, or keep a multiple of {per_image} in every class."
                )
            if count:
                members = np.flatnonzero(self.labels == label)
                cells = self.cells[members[np.argsort(self.origin[members], kind="stable")]]
                images.append(join(cells.reshape(per_image, -1, *cells.shape[1:]), self.factor, self.size))
                labels.append(np.full(count // per_image, label, np.int64))
        return np.concatenate(images), np.concatenate(labels)

    def _problems(self) -> Iterator[str]:
        """What is wrong with the arrays, one sentence each; every check relies on those before it."""
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
            yield f"Class names must be unique, 1 to {MAX_CLASSES}."
        if unprintable := [name for name in (self.name, *self.classes) if not name or not name.isprintable()]:
            yield f"The names of a set and its classes must be printable, not {unprintable[0]!a}."
        if self.labels.shape != (count,) or self.origin.shape != (count,):
            yield f"{count} cells need as many labels and origins."
        if self.labels.min() < 0 or self.labels.max() >= len(self.classes):
            yield (
                f"Labels run from {self.labels.min()} to {self.labels.max()}, but the set has"
                f" {plural(len(self.classes), 'class')}."
            )
        if self.origin.min() < 0 or self.origin.max() >= 2**32:
            yield "Origins must be unsigned 32-bit integers."
        if self.soft_labels is not None and self.soft_labels.shape != (count, len(self.classes)):
            yield f"Soft labels must be [{count}, {len(self.classes)}], not {list(self.soft_labels.shape)}."
        if self.label_kind not in (None, *LABEL_KINDS):
            yield f"Soft labels are {', '.join(LABEL_KINDS)}, not {self.label_kind!r}."
        for metric, values in self.scores.items():
            if values.shape != (count,):
                yield f"Scores of {metric!r} must be one per patch ({count}), not {list(values.shape)}."
        floats = {"cells": self.cells, "soft labels": self.soft_labels, **self.scores}
        for what, array in floats.items():
            if array is not None and array.dtype.kind == "f" and not np.isfinite(array).all():
                yield f"The {what} contain NaN or infinite values."


def subset_provenance(provenance: Mapping[str, Any], patches: int) -> dict[str, Any]:
    """The provenance of a subset of a set of `patches`: what is still true of it, and that it is a subset.

    >>> subset_provenance({"method": "idc", "accuracy": [60.4]}, 400)
    {'method': 'idc', 'kept': {'of': 400}}
    """
    still_true = {name: value for name, value in provenance.items() if name not in ("accuracy", "curve", "kept")}
    return {**still_true, "kept": {"of": patches, **_kept(provenance)}}


def _as_array(values: Any) -> NDArray[Any]:
    """An array of an array-like or of a tensor, without importing torch."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def subset_name(name: str, ranking: Ranking | None, provenance: Mapping[str, Any], *, total: int, patches: int) -> str:
    """The name of a subset of `patches` of a set of `total`: its rule, unless it is YOCO's, and its size are added.

    >>> whole, kept = subset_name("mtt", Ranking("lbpe"), {}, total=500, patches=20), {"kept": {"of": 500}}
    >>> whole, subset_name(whole, Ranking("lbpe"), kept, total=20, patches=10)
    ('mtt-20of500', 'mtt-10of500')
    >>> subset_name("mtt", Ranking("el2n", "hard"), {}, total=500, patches=20)
    'mtt-el2n-hard-20of500'
    """
    kept = _kept(provenance)
    rule = _rule_suffix(ranking, kept)
    return f"{whole_name(name, ranking, provenance, total)}{rule}-{patches}of{kept.get('of', total)}"


def whole_name(name: str, ranking: Ranking | None, provenance: Mapping[str, Any], patches: int) -> str:
    """The name without what `subset_name` added for a subset of `patches`."""
    kept = _kept(provenance)
    return name.removesuffix(f"{_rule_suffix(ranking, kept)}-{patches}of{kept.get('of', patches)}")


def _kept(provenance: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = provenance.get("kept")
    return kept if isinstance(kept, Mapping) else {}


def _rule_suffix(ranking: Ranking | None, kept: Mapping[str, Any]) -> str:
    if "rule" in kept:
        return f"-{kept['rule']}"
    if ranking is None or (ranking.metric, ranking.prefer, ranking.balanced) == ("lbpe", "easy", True):
        return ""
    hard, unbalanced = ("-hard" if ranking.prefer == "hard" else ""), ("" if ranking.balanced else "-unbalanced")
    return f"-{ranking.metric}{hard}{unbalanced}"
