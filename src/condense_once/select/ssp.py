"""SSP as a selection: as many k-means clusters as patches are to be kept, and of each the patch nearest to its centre.

The metric `ssp` has a few clusters and ranks all patches by their distance; here the number of clusters is the size asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.kmeans import in_order, k_means


def ssp_rows(features: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Keep `count` prototypes.

    Only members of a cluster stand for it, so that no patch is kept twice, as it can be in the authors' program. Of members
    that are equally near, as two always are, the one whose features come first in order is kept: whatever row they are in.

    Args:
        features: `[N, d]`.
        count: how many to keep, from 0 to N.
        rng: draws the first centres.

    Returns:
        `[count]`, ascending.

    >>> ssp_rows(np.array([[0.0], [1.0], [2.0], [10.0], [10.0]]), 2, np.random.default_rng(0)).tolist()
    [1, 3]
    """
    if not count:
        return np.empty(0, np.int64)
    return k_means(features, count, rng).nearest(ties=np.argsort(in_order(features)))
