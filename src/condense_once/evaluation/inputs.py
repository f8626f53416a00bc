"""Training and test images as the network's inputs: in one space, with the same label numbering."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.condensed.class_matching import known_source, match_classes, open_test_source
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.arrays import ValueRange
from condense_once.data.catalogue import SOURCES
from condense_once.data.open import is_here, open_source
from condense_once.data.source import Source, data_folder
from condense_once.data.zca import Zca
from condense_once.data.zca_store import kept_zca, zca_by_name
from condense_once.errors import BadOption
from condense_once.nets import Shape
from condense_once.progress import Progress
from condense_once.train.images import Images, StreamedImages, to_memory, training_data


def training_images(data: CondensedSet, *, double_normalise: bool = False) -> Images:
    """The patches of a set, normalised; with `double_normalise`, those of a normalised set once more."""
    if not double_normalise or data.space.kind == "pixels":
        return training_data(data).images
    again = Space("pixels", data.space.mean, data.space.std)
    return to_memory(StreamedImages(len(data), lambda rows: again.to_network(data.inputs(rows))), data.shape)


def resolve_test(
    data: CondensedSet,
    test: Source | str | Path | None = None,
    *,
    like: str | None = None,
    values: ValueRange | None = None,
    data_dir: Path | None = None,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> tuple[Source, str | None]:
    """The source to test a set on, and a note: as given, or by default the one with the set's classes.

    `like` and `values` describe a given path, as for `open_source`. If the default is not downloaded but a sample of it is
    bundled, the sample, as the note says. `progress` and `notify` are those of `open_source`.
    """
    if test is not None:
        source = open_test_source(
            data, test, like=like, values=values, data_dir=data_dir, progress=progress, notify=notify
        )
        _labels_in(data, source)  # refused before anything is estimated or trained
        return source, None
    if like is not None or values is not None:
        raise BadOption(f"`{'values' if like is None else 'like'}` describes a path given as `test`; pass both.")
    known = known_source(data)
    if known is None:
        raise BadOption(f"The test images of {data.name} cannot be inferred from its classes; pass a source as `test`.")
    sample = f"{known.name}-sample"
    if is_here(known, data_dir) or sample not in SOURCES:
        return open_source(known.name, data_dir=data_dir), None
    note = f"The test images are the bundled {sample}; download {known.name} to test on its whole test split."
    return open_source(sample), note


def prepare_test_images(
    data: CondensedSet, source: Source, *, whiten: bool = True, data_dir: Path | None = None
) -> tuple[Images, Tensor]:
    """The test images of a source in the space of a set, and their labels in its numbering.

    Classes are matched by name; test images of classes that the set lacks are left out. Without `whiten`, test images for a
    whitened set are only normalised, as in the authors' code. `data_dir` is the folder of the source that the whitening is
    fitted to.
    """
    split, space = source.test, data.space
    labels = _labels_in(data, source)
    rows = np.flatnonzero(labels >= 0)
    whitening = _whitening(space, split.shape, data_dir) if space.kind == "zca" and whiten else None

    def read(chosen: slice | NDArray[Any]) -> NDArray[np.float32]:
        pixels = split.take(rows[chosen]).astype(np.float32) / np.float32(255)
        return whitening.apply(pixels) if whitening else space.to_network(space.from_pixels(pixels))

    return to_memory(StreamedImages(len(rows), read), data.shape), torch.from_numpy(labels[rows])


def check_test_source(data: CondensedSet, source: Source, *, whiten: bool = True, data_dir: Path | None = None) -> None:
    """Refuse what `prepare_test_images` refuses, before any image is read."""
    _labels_in(data, source)
    if data.space.kind == "zca" and whiten and _kept(data.space, data.shape, data_dir) is None:
        _ = open_source(data.space.zca["source"], data_dir=data_dir).train


def _labels_in(data: CondensedSet, source: Source) -> NDArray[np.int64]:
    """The label of each test image in the numbering of a set, or −1; refused unless the images fit the set."""
    split = source.test
    if split.shape != data.shape:
        raise BadOption(
            f"{source.name} has test images of {'×'.join(map(str, split.shape))}, but {data.name} has"
            f" {'×'.join(map(str, data.shape))}; pass another `test`."
        )
    labels: NDArray[np.int64] = match_classes(data, source)[split.labels]
    if not (labels >= 0).any():
        raise BadOption(f"{source.name} has no test images of any class of {data.name}; pass another `test`.")
    return labels


def _kept(space: Space, shape: Shape, data_dir: Path | None) -> Zca | None:
    return zca_by_name(space.zca.get("fit"), shape, space.mean, space.std, space.zca, data_dir=data_dir)


def _whitening(space: Space, shape: Shape, data_dir: Path | None) -> Zca:
    if (kept := _kept(space, shape, data_dir)) is not None:
        return kept
    zca = space.zca
    return _fitted(zca["source"], data_folder(data_dir), space.mean, space.std, zca["recipe"], zca["regularisation"])


@lru_cache(maxsize=2)  # fitting takes a pass over the training images and an eigendecomposition
def _fitted(
    source: str, data_dir: Path, mean: tuple[float, ...], std: tuple[float, ...], recipe: str, regularisation: float
) -> Zca:
    description = {"recipe": recipe, "regularisation": regularisation}
    return kept_zca(open_source(source, data_dir=data_dir).train, mean, std, description, data_dir=data_dir)
