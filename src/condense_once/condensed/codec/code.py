"""What a decoder of the codec `layered` has to know, besides the shape of cells. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from condense_once.errors import BadFile

MAX_PLANES = 24
MAX_COEFFICIENT = 2**24  # so that decoding is exact in 64-bit floats
MAX_EXPONENT = 60


@dataclass(frozen=True)
class Code:
    """What a decoder has to know, stored in the header."""

    planes: int
    layers: int
    group: int  # patches of a group; the last may have fewer
    steps: tuple[int, ...]  # of the last plane, per component, in sixteenths
    opponent: bool
    exponent: int | None  # see `Transform`

    def __post_init__(self) -> None:
        numbers = (self.planes, self.layers, self.group, *self.steps, self.exponent or 0)
        if any(type(number) is not int for number in numbers) or type(self.opponent) is not bool:
            raise BadFile("its code is not made of integers.")
        if not (1 <= self.layers <= self.planes <= MAX_PLANES and self.group >= 1 and min(self.steps, default=0) >= 1):
            raise BadFile("its code has no layers, groups or steps.")
        if max(self.steps) << self.planes > MAX_COEFFICIENT or abs(self.exponent or 0) > MAX_EXPONENT:
            raise BadFile("the steps or the exponent of its code are too large.")

    def planes_of(self, layer: int) -> range:
        """The planes of a layer, by the power of two of their step."""
        last = self.layers - 1 - layer
        return range(self.planes - 1 if layer == 0 else last, last - 1, -1)

    def groups(self, patches: int) -> int:
        return -(-patches // self.group)
