"""Nested sets: condensed so that the first images of every class are a good set of their own, for every number of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from condense_once.condensed.set import NESTED, CondensedSet, Ranking


def nested_sizes(ipc: int) -> list[int]:
    """Images per class of the prefixes that a nested run matches: 1, 2, 5, 10, 20, 50 … up to `ipc`.

    >>> nested_sizes(10), nested_sizes(3), nested_sizes(50)
    ([1, 2, 5, 10], [1, 2, 3], [1, 2, 5, 10, 20, 50])
    """
    decades = (size * 10**power for power in range(len(str(ipc))) for size in (1, 2, 5))
    return sorted({size for size in decades if size < ipc} | {ipc})


@dataclass(frozen=True)
class Stage:
    """A part of a run that grows a set: so many images per class are matched, and some of them are from earlier stages."""

    images: int
    settled: int  # those of earlier stages
    fraction: float  # of the stage that is done


def stage_at(fraction: float, ipc: int) -> Stage:
    """The stage when this fraction of the run is done. A stage's share of the run is its new images' share of the set.

    >>> stage_at(0.0, 10), stage_at(0.75, 10)
    (Stage(images=1, settled=0, fraction=0.0), Stage(images=10, settled=5, fraction=0.5))
    """
    position, sizes = fraction * ipc, nested_sizes(ipc)
    images = next((size for size in sizes if position < size), ipc)
    settled = max((size for size in sizes if size < images), default=0)
    return Stage(images, settled, (position - settled) / (images - settled))


def ranked_by_image(made: CondensedSet, ipc: int, sizes: Sequence[int]) -> CondensedSet:
    """A whole set in its own order: the patches of the first image of every class, then those of the second, and so on.

    `sizes` are the images per class of the prefixes that it was condensed for.
    """
    cell, image = np.divmod(made.origin % (ipc * made.factor**2), ipc)  # origins go class by class, cell by cell
    rows = np.lexsort((made.labels, image * made.factor**2 + cell))
    return replace(made.take(rows), ranking=Ranking(NESTED, settings={"sizes": list(sizes)}))
