"""A replay memory of a fixed number of bytes: when classes arrive, those already stored are cut to make room.

Everything in it is a condensed set whose rows are ordered best first, one set per class, so that making room is keeping a
prefix. Real images fit the same frame: a coreset is a condensed set of factor 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from condense_once import BadOption, CondensedSet


@dataclass
class ReplayMemory:
    """Exemplars of the classes seen so far, the same number of each.

    >>> from condense_once import load
    >>> whole = load("cifar10-idc-ipc10")
    >>> memory = ReplayMemory(capacity=15_360)  # 20 patches of 768 bytes
    >>> memory.store({label: whole[whole.labels == label] for label in (0, 1)})
    >>> memory.counts(), memory.used
    ({0: 10, 1: 10}, 15360)
    >>> memory.store({label: whole[whole.labels == label] for label in (2, 3)})
    >>> memory.counts(), memory.used
    ({0: 5, 1: 5, 2: 5, 3: 5}, 15360)
    """

    capacity: int  # bytes of pixels; labels are not counted
    exemplars: dict[int, CondensedSet] = field(default_factory=dict)  # by label, best first

    def __post_init__(self) -> None:
        if self.capacity < 0:
            raise BadOption(f"`capacity` must be at least 0 bytes, not {self.capacity}.")

    def store(self, arriving: Mapping[int, CondensedSet]) -> None:
        """Add classes and cut all of them to the same number of exemplars; a remainder goes to the first ones stored."""
        together = {**self.exemplars, **arriving}
        room = self.capacity // bytes_each(together)
        per_class, remainder = divmod(room, len(together))
        keep = {label: per_class + (place < remainder) for place, label in enumerate(together)}
        self.exemplars = {label: kept[: keep[label]] for label, kept in together.items() if keep[label]}

    @property
    def used(self) -> int:
        """Bytes of the pixels stored."""
        return sum(kept.cells.nbytes for kept in self.exemplars.values())

    def counts(self) -> dict[int, int]:
        return {label: len(kept) for label, kept in self.exemplars.items()}

    def inputs(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """All exemplars as network inputs `[n, ch, h, w]`, with their labels `[n]`; both are empty at first."""
        if not self.exemplars:
            return np.empty((0, 3, 32, 32), np.float32), np.empty(0, np.int64)
        kept = self.exemplars.values()
        return np.concatenate([part.inputs() for part in kept]), np.concatenate([part.labels for part in kept])


def bytes_each(exemplars: Mapping[int, CondensedSet]) -> int:
    """The bytes of one exemplar, which must be the same for all classes."""
    sizes = {int(kept.cells[0].nbytes) for kept in exemplars.values()}
    if len(sizes) != 1:
        raise BadOption(f"All classes of a memory need exemplars of one size in bytes, not {sorted(sizes)}.")
    return sizes.pop()


def at_half_size(images: CondensedSet) -> CondensedSet:
    """The same images, each stored at half its side, by averaging 2×2 pixels: a quarter of the bytes."""
    count, channels, height, width = images.cells.shape
    if images.factor != 1 or images.cells.dtype != np.uint8 or height % 2 or width % 2:
        raise BadOption("Only 8-bit images of factor 1 with even sides can be stored at half size.")
    blocks = images.cells.reshape(count, channels, height // 2, 2, width // 2, 2).astype(np.float32)
    return replace(images, cells=np.rint(blocks.mean((3, 5))).astype(np.uint8), factor=2)
