"""How soft labels are stored: in 32, 16 or 8 bits, or only the largest of many. Standard library and numpy only.

Every coding is a fixed point of itself: labels that were rounded once are stored again, row by row or for fewer classes,
without further change. So a file, its subsets and its copies hold the same labels to the bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadFile, BadOption

Floats = NDArray[np.float32]
Tensors = dict[str, tuple[str, tuple[int, ...]]]  # data type code and shape of each tensor

SOFT = "soft_labels"
SCALE = "soft_labels/scale"  # of 8 bits: the smallest value of each row, and the step
CLASSES = "soft_labels/classes"  # of the largest entries: their classes
LEVELS = 255  # steps of 8 bits
LARGEST_START = 2047  # steps from zero to the smallest value, so that 16 bits hold it exactly
STEP_EXPONENTS = (-24, 9)  # powers of two that 16-bit floats hold
LARGEST = 60_000.0  # labels that 16 bits hold, with a step to spare
NAMES = "float32, float16, uint8, or top8 (the 8 largest of every row; any number)"


@dataclass(frozen=True)
class LabelCoding:
    """`float32`, `float16`, `uint8`, or `top` with the number of entries that are kept of every row.

    >>> LabelCoding.parse("top8"), str(LabelCoding.parse("uint8"))
    (LabelCoding(name='top', kept=8), 'uint8')
    """

    name: str = "float32"
    kept: int = 0

    @classmethod
    def parse(cls, text: str) -> LabelCoding:
        if isinstance(text, str) and text in ("float32", "float16", "uint8"):
            return cls(text)
        if isinstance(text, str) and (top := re.fullmatch("top([1-9][0-9]{0,4})", text)):
            return cls("top", int(top[1]))
        raise BadOption(f"`label_coding` must be {NAMES}, not {text!r}.")

    def __str__(self) -> str:
        return f"top{self.kept}" if self.name == "top" else self.name

    def for_classes(self, classes: int) -> LabelCoding:
        """The same, or 16 bits where there are no more classes than entries to keep."""
        return LabelCoding("float16") if self.name == "top" and self.kept >= classes else self

    def layout(self, patches: int, classes: int) -> Tensors:
        """The tensors that hold the labels of so many patches."""
        if self.name == "uint8":
            return {SOFT: ("U8", (patches, classes)), SCALE: ("F16", (patches, 2))}
        if self.name == "top":
            return {SOFT: ("F16", (patches, self.kept + 1)), CLASSES: ("U16", (patches, self.kept))}
        return {SOFT: ("F16" if self.name == "float16" else "F32", (patches, classes))}

    def bytes_per_label(self, classes: int) -> int:
        """What a patch's label takes in a file.

        >>> [LabelCoding.parse(name).bytes_per_label(100) for name in ("float32", "float16", "uint8", "top8")]
        [400, 200, 104, 34]
        """
        sizes = {"F32": 4, "F16": 2, "U16": 2, "U8": 1}
        return sum(sizes[code] * shape[1] for code, shape in self.layout(1, classes).values())

    def encode(self, soft: Floats) -> dict[str, NDArray[Any]]:
        """The tensors of labels `[n, C]`."""
        if self.name == "float32":
            return {SOFT: soft.astype(np.float32)}
        if np.abs(soft).max(initial=0) > LARGEST:
            raise BadOption(
                f"Soft labels up to {np.abs(soft).max():.3g} overflow 16 bits; pass `label_coding` float32."
            )
        if self.name == "float16":
            return {SOFT: soft.astype(np.float16)}
        return _encode_uint8(soft) if self.name == "uint8" else _encode_top(soft, self.kept)

    def decode(self, tensors: Mapping[str, NDArray[Any]], classes: int) -> Floats:
        """Labels `[n, C]` from their tensors."""
        stored = tensors[SOFT].astype(np.float32)
        if self.name == "uint8":
            low, step = tensors[SCALE].astype(np.float32).T[:, :, None]
            values: Floats = low + step * stored
            return values
        if self.name == "top":
            if (tensors[CLASSES] >= classes).any():
                raise BadFile(f"Soft labels are of class {tensors[CLASSES].max()}, but there are only {classes}.")
            soft = np.repeat(stored[:, -1:], classes, axis=1)
            np.put_along_axis(soft, tensors[CLASSES].astype(np.int64), stored[:, :-1], axis=1)
            return soft
        return stored

    def rounded(self, soft: Floats) -> Floats:
        """The labels as they will be read again."""
        return self.decode(self.encode(soft), soft.shape[1])

    def read(self, rows: Callable[[str], NDArray[Any]], classes: int) -> Floats:
        """Labels from a file whose `rows` of a tensor can be read."""
        return self.decode({name: rows(name) for name in self.layout(0, classes)}, classes)


def _encode_uint8(soft: Floats) -> dict[str, NDArray[Any]]:
    """Steps of a power of two from a multiple of it: exact in 32-bit floats, and rows keep their values without some classes."""
    low, high = soft.min(1, keepdims=True).astype(np.float64), soft.max(1, keepdims=True).astype(np.float64)
    step = np.full_like(low, 2.0 ** STEP_EXPONENTS[0])
    for _ in range(STEP_EXPONENTS[1] - STEP_EXPONENTS[0]):
        start = np.floor(low / step)
        step[(np.ceil(high / step) - start > LEVELS) | (np.abs(start) > LARGEST_START)] *= 2
    start = np.floor(low / step)
    levels = (np.rint(soft / step) - start).clip(0, LEVELS).astype(np.uint8)
    return {SOFT: levels, SCALE: np.concatenate([start * step, step], axis=1).astype(np.float16)}


def _encode_top(soft: Floats, kept: int) -> dict[str, NDArray[Any]]:
    """The largest entries with their classes, and the mean of all others, so that probabilities still sum to one."""
    order = np.argsort(-soft, axis=1, kind="stable")
    ordered = np.take_along_axis(soft, order, axis=1).astype(np.float64)
    rest = ordered[:, kept:].mean(1, keepdims=True)
    return {
        SOFT: np.concatenate([ordered[:, :kept], rest], axis=1).astype(np.float16),
        CLASSES: order[:, :kept].astype(np.uint16),
    }
