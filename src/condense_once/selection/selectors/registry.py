"""What a selector is: a function that picks rows for one size, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.registry import Registry

Reads = Literal["scores", "features", "positions"]  # of patches; a position is that in the stored order


class Pick(Protocol):
    """Picks `count` of some patches, given their scores or positions `[n]`, or features `[n, d]`; returns indices into them.

    A balanced rule calls it once per class. `data` are all patches to select from and `total` is how many of them are kept over
    all classes; `rng` is the same for all calls, and None for a selector that does not sample.
    """

    def __call__(
        self, values: NDArray[Any], count: int, *, data: CondensedSet, total: int, rng: np.random.Generator | None
    ) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class SelectorInfo:
    name: str
    summary: str
    metric: str  # whose scores it reads, or whose scoring run records the features it reads; else one that needs none
    pick: Pick
    reads: Reads = "scores"
    stream: str | None = None  # the random stream it samples from; None: it does not sample
    repeats: bool = False  # whether it may pick a row more than once

    def pick_rows(
        self, values: NDArray[Any], count: int, *, data: CondensedSet, total: int, rng: np.random.Generator | None
    ) -> NDArray[np.int64]:
        """Call `pick` and check what it returns."""
        rows = np.asarray(self.pick(values, count, data=data, total=total, rng=rng))
        as_many = rows.shape == (count,) and (self.repeats or len(np.unique(rows)) == count)
        if not as_many or (count and not (rows.min() >= 0 and rows.max() < len(values))):
            raise BadOption(f"The selector {self.name!r} must pick {count} different rows out of {len(values)}.")
        return rows.astype(np.int64)


SELECTORS: Registry[SelectorInfo] = Registry("selectors")


def images_per_class(data: CondensedSet, patches: int) -> float:
    """A number of patches as images per class, over the classes that have patches."""
    return patches / (data.factor**2 * len(np.unique(data.labels)))
