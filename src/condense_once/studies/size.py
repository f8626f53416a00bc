"""Sizes in a study: how much of a set is kept."""

from __future__ import annotations

from dataclasses import dataclass

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption


@dataclass(frozen=True)
class Size:
    """How much of a set is kept: so many images per class, or a share of its patches.

    >>> str(Size.parse("5")), str(Size.parse("30%")), Size.parse("0.3") == Size.parse("30%"), str(Size.parse("all"))
    ('5', '30 %', True, '100 %')
    """

    ipc: int | None = None
    fraction: float | None = None

    @classmethod
    def parse(cls, text: str | int | float) -> Size:
        written = str(text).strip()
        try:
            if written.isdecimal():
                size = cls(ipc=int(written))
            elif written.endswith("%") or written == "all":
                size = cls(fraction=1.0 if written == "all" else float(written.rstrip("% ")) / 100)
            else:
                share = float(written)
                size = cls(fraction=share if share < 1 else None)  # 1.0 could be one image as well as all of them
        except ValueError:
            size = cls()
        if (size.ipc or 0) >= 1 or 0 < (size.fraction or 0) <= 1:
            return size
        raise BadOption(
            f"A size is a number of images per class, such as 5, a share, such as 30% or 0.3, or all, not {written!r}."
        )

    def patches(self, data: CondensedSet) -> int:
        """How many of a set's patches that is."""
        count = self._count(data)
        if count > len(data):
            raise BadOption(
                f"{data.name} has {len(data)} patches, so {count} ({self} images per class) cannot be kept; leave out"
                " sizes that are too large."
            )
        return count

    def leaves_out_some(self, data: CondensedSet) -> bool:
        return self._count(data) < len(data)

    def _count(self, data: CondensedSet) -> int:
        if self.ipc is not None:
            return self.ipc * data.factor**2 * len(data.classes)
        return max(round((self.fraction or 1) * len(data)), 1)

    def __str__(self) -> str:
        return f"{self.ipc}" if self.fraction is None else f"{100 * self.fraction:g} %"
