"""Training and test images as a network sees them: in one space, with labels that mean the same."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.catalogue import SOURCES, recognise
from condense_once.data.open import is_here, open_source
from condense_once.data.source import Source, SourceInfo, data_home
from condense_once.data.zca import Zca, fit_zca
from condense_once.errors import BadOption
from condense_once.train.images import Images, StreamedImages, hold, training_data


def training_images(data: CondensedSet, *, normalise_again: bool = False) -> Images:
    """The patches of a set, normalised once, or once too often where a protocol wants that shown."""
    if not normalise_again or data.space.kind == "pixels":
        return training_data(data).images
    again = Space("pixels", data.space.mean, data.space.std)
    return hold(StreamedImages(len(data), lambda rows: again.to_network(data.inputs(rows))), data.shape)


def source_for_testing(
    data: CondensedSet, spec: str | None = None, *, home: Path | None = None
) -> tuple[Source, str | None]:
    """The source named, or the one whose classes a set has; where that is not downloaded, its bundled sample.

    With a sample that nobody named comes a sentence that says so, else nothing.
    """
    if spec is not None:
        folder = spec not in SOURCES and Path(spec).is_dir()
        size = data.size[0] if folder and data.size[0] == data.size[1] else None
        return open_source(spec, home=home, size=size), None
    known = recognise(data.classes, data.channels) or _made_from(data)
    if known is None:
        raise BadOption(f"What to test {data.name} on cannot be known from its classes; pass --test SOURCE.")
    sample = f"{known.name}-sample"
    if is_here(known, home) or sample not in SOURCES:
        return open_source(known.name, home=home), None
    whole = f"for the whole test split: condense-once data get {known.name}."
    return open_source(sample), f"Testing on the bundled {sample}; {whole}"


def _made_from(data: CondensedSet) -> SourceInfo | None:
    """The known source that a set says it was made from, if it has all classes of the set."""
    name = str(data.provenance.get("source", "")).partition(",")[0]
    known = SOURCES.get(name) if name in SOURCES else None
    return known if known is not None and set(data.classes) <= set(known.classes) else None


def images_for_testing(
    data: CondensedSet, source: Source, *, whiten: bool = True, home: Path | None = None
) -> tuple[Images, Tensor]:
    """The test images of a source in the space of a set, and their labels in its numbering.

    Classes are matched by name; test images of classes that the set does not have are left out. Without `whiten`, those for a
    whitened set are only normalised, as the authors have it. `home` is where the source that was whitened is kept.
    """
    split, space = source.test, data.space
    numbers = _numbers(data, source)
    rows = np.flatnonzero(numbers >= 0)
    whitening = _whitening(space, home) if space.kind == "zca" and whiten else None

    def read(chosen: slice | NDArray[Any]) -> NDArray[np.float32]:
        pixels = split.take(rows[chosen]).astype(np.float32) / np.float32(255)
        return whitening.apply(pixels) if whitening else space.to_network(space.from_pixels(pixels))

    return hold(StreamedImages(len(rows), read), data.shape), torch.from_numpy(numbers[rows])


def check_testing(data: CondensedSet, source: Source, *, whiten: bool = True, home: Path | None = None) -> None:
    """Refuse what `images_for_testing` would refuse, before any image is read."""
    _numbers(data, source)
    if data.space.kind == "zca" and whiten:
        _ = open_source(data.space.zca["source"], home=home).train


def _numbers(data: CondensedSet, source: Source) -> NDArray[np.int64]:
    """The label of each test image in the numbering of a set, or −1; refused unless the images fit the set."""
    split = source.test
    if split.shape != data.shape:
        raise BadOption(
            f"{source.name} has test images of {'×'.join(map(str, split.shape))}, but {data.name} was made for"
            f" {'×'.join(map(str, data.shape))}; pass the right --test."
        )
    numbers: NDArray[np.int64] = _same_classes(data, source)[split.labels]
    if not (numbers >= 0).any():
        raise BadOption(f"{source.name} has test images of no class of {data.name}; pass the right --test.")
    return numbers


def _whitening(space: Space, home: Path | None) -> Zca:
    zca = space.zca
    return _fitted(zca["source"], data_home(home), space.mean, space.std, zca["recipe"], zca["regularisation"])


@lru_cache(maxsize=2)  # fitting takes a pass over the training images and the eigenvectors of all their pixels
def _fitted(
    source: str, home: Path, mean: tuple[float, ...], std: tuple[float, ...], recipe: str, regularisation: float
) -> Zca:
    description = {"recipe": recipe, "regularisation": regularisation}
    return fit_zca(open_source(source, home=home).train, mean, std, description)


def _same_classes(data: CondensedSet, source: Source) -> NDArray[np.int64]:
    """For each class of the source its number in the set, or −1."""
    missing = [name for name in data.classes if name not in source.classes]
    nameless = all(name.isdecimal() for name in data.classes) and len(missing) == len(data.classes) == len(
        source.classes
    )
    if nameless:
        return np.arange(len(data.classes))  # a set whose class names nobody knew
    if missing:
        raise BadOption(
            f"{source.name} has no test images of {missing[0]!r}, a class of {data.name}; pass the right --test."
        )
    return np.array([data.classes.index(name) if name in data.classes else -1 for name in source.classes])
