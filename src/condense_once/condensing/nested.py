"""Nested sets: condensed so that the first images of every class are a good set of their own, for every number of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensing.config import CondenseConfig

METRIC = "nested"  # the order of a nested set comes from condensing, not from scores


def nested_sizes(ipc: int) -> list[int]:
    """Images per class of the prefixes that a nested run matches: 1, 2, 5, 10, 20, 50 … up to `ipc`.

    >>> nested_sizes(10), nested_sizes(3), nested_sizes(50)
    ([1, 2, 5, 10], [1, 2, 3], [1, 2, 5, 10, 20, 50])
    """
    decades = (size * 10**power for power in range(len(str(ipc))) for size in (1, 2, 5))
    return sorted({size for size in decades if size < ipc} | {ipc})


def matched_prefixes(config: CondenseConfig) -> list[int]:
    """Patches per class of every prefix that a run matches: all patches, and smaller prefixes if the set is nested."""
    sizes = nested_sizes(config.ipc) if config.nested else [config.ipc]
    return [size * config.factor**2 for size in sizes]


def ranked_by_image(made: CondensedSet, ipc: int) -> CondensedSet:
    """A whole set in its own order: the patches of the first image of every class, then those of the second, and so on."""
    cell, image = np.divmod(made.origin % (ipc * made.factor**2), ipc)  # origins go class by class, cell by cell
    rows = np.lexsort((made.labels, image * made.factor**2 + cell))
    return replace(made.take(rows), ranking=Ranking(METRIC, settings={"sizes": nested_sizes(ipc)}))
