"""The data types that a set stores its cells and soft labels in. Standard library and numpy only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import SpaceKind
from condense_once.errors import BadOption

StoredDtype = Literal["float32", "float16", "uint8"]


def with_dtype(data: CondensedSet, dtype: StoredDtype) -> CondensedSet:
    """The set with its cells rounded to another data type.

    >>> from condense_once.condensed.bundled import load
    >>> with_dtype(load("cifar10-idc-ipc10"), "uint8").cells.dtype
    dtype('uint8')
    """
    check_dtype(data.space.kind, dtype, data.name)
    return data if data.cells.dtype.name == dtype else replace(data, cells=_rounded(data.cells, dtype, data.name))


def with_label_coding(data: CondensedSet, coding: str) -> CondensedSet:
    """The set with its soft labels rounded to another coding (`LabelCoding`)."""
    if data.soft_labels is None:
        raise BadOption(f"{data.name} has no soft labels; leave out `label_coding`.")
    known = LabelCoding.parse(coding).for_classes(len(data.classes))
    if str(known) == data.label_coding:
        return data
    return replace(data, soft_labels=known.rounded(data.soft_labels), label_coding=str(known))


def check_dtype(space: SpaceKind, dtype: str, name: str) -> None:
    """Refuse a data type that cannot hold the values of a space."""
    if dtype not in get_args(StoredDtype):
        raise BadOption(f"`dtype` must be one of {', '.join(get_args(StoredDtype))}, not {dtype!r}.")
    if space == "pixels" and dtype != "uint8":
        raise BadOption(f"{name} holds pixels, which are stored in 8 bits; leave out `dtype`.")
    if space != "pixels" and dtype == "uint8":
        raise BadOption(
            f"{name} holds {space} values, which may be far outside the 256 levels of a pixel; pass `dtype` float16 to halve it."
        )


def _rounded(cells: NDArray[Any], dtype: str, name: str) -> NDArray[Any]:
    largest, most = float(np.abs(cells).max()), float(np.finfo(dtype).max)
    if largest > most:
        raise BadOption(f"{name} has values up to {largest:.3g}, which overflow {dtype}; pass `dtype` float32.")
    return cells.astype(dtype)
