"""SSP as a selector: as many k-means clusters as patches to keep, and of each the patch nearest to its centre.

The metric `ssp` ranks all patches by the distance to the centres of a few clusters; here there is one cluster per patch kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.kmeans import in_order, k_means
from condense_once.selection.selectors.registry import SELECTORS, SelectorInfo
from condense_once.train.seeds import Stream


def ssp_rows(features: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Keep `count` prototypes.

    A prototype is a member of its cluster, so that no patch is kept twice (the authors' code can). Ties, which clusters of two
    always have, go to the member whose features sort first, so the order of the rows does not matter.

    Args:
        features: `[N, d]`.
        count: how many to keep, from 0 to N.
        rng: samples the initial centres.

    Returns:
        `[count]`, ascending.

    >>> ssp_rows(np.array([[0.0], [1.0], [2.0], [10.0], [10.0]]), 2, np.random.default_rng(0)).tolist()
    [1, 3]
    """
    if not count:
        return np.empty(0, np.int64)
    return k_means(features, count, rng).nearest(ties=np.argsort(in_order(features)))


def _pick(
    values: NDArray[Any], count: int, *, data: CondensedSet, total: int, rng: np.random.Generator | None
) -> NDArray[np.int64]:
    return ssp_rows(values, count, rng or np.random.default_rng(0))


SSP = SELECTORS.add(
    SelectorInfo(
        "ssp",
        "prototypes: the patch nearest to the centre of each k-means cluster, none twice",
        metric="ssp",
        pick=_pick,
        reads="features",
        stream=Stream.SSP,
    )
)
