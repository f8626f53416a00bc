"""Training and test images as a network sees them: in one space, with labels that mean the same."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.opening import open_source
from condense_once.data.source import Source
from condense_once.data.whitening import fit_whitening
from condense_once.errors import BadOption


def training_inputs(data: CondensedSet, *, normalise_again: bool = False) -> Tensor:
    """The patches of a set `[n, ch, h, w]`, normalised once, or once too often where a protocol wants that shown."""
    values = data.inputs()
    if normalise_again and data.space.kind != "pixels":
        values = Space("pixels", data.space.mean, data.space.std).to_network(values)
    return torch.from_numpy(values)


def test_inputs(data: CondensedSet, source: Source) -> tuple[Tensor, Tensor]:
    """The test images of a source in the space of a set, and their labels in its numbering.

    Classes are matched by name; test images of classes that the set does not have are left out.
    """
    split = source.test
    if split.shape != data.shape:
        raise BadOption(
            f"{source.name} has test images of {'×'.join(map(str, split.shape))}, but {data.name} was made for"
            f" {'×'.join(map(str, data.shape))}; pass the right --test."
        )
    numbers = _same_classes(data, source)[split.labels]
    rows = np.flatnonzero(numbers >= 0)
    space = data.space
    pixels = split.take(rows).astype(np.float32) / np.float32(255)
    if space.kind == "zca":
        fitted = open_source(space.zca["source"])
        values = fit_whitening(fitted.train, space.mean, space.std, space.zca).apply(pixels)
    else:
        values = space.to_network(space.from_pixels(pixels))
    return torch.from_numpy(values), torch.from_numpy(numbers[rows])


def _same_classes(data: CondensedSet, source: Source) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
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
