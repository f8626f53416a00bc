"""Easy or hard? The paper's figure 3: hard patches are better where little is pruned, easy ones where much is."""

from __future__ import annotations

import numpy as np

from condense_once.select.order import Prefer

# Images a class, and the share pruned at which the two are as good: CIFAR-10 condensed to 10 and 50, and all of it.
TURNING_POINTS = ((10, 0.24), (50, 0.38), (5000, 0.72))


def turning_point(ipc: float) -> float:
    """The share to be pruned from which on easy patches are better, for a set of so many images per class.

    Read off straight lines over the logarithm of the size; smaller and larger sets are taken as the outermost ones.

    >>> [round(turning_point(ipc), 6) for ipc in (1, 10, 50, 500, 5000)]
    [0.24, 0.24, 0.38, 0.55, 0.72]
    """
    sizes, shares = zip(*TURNING_POINTS, strict=True)
    return float(np.interp(np.log(ipc), np.log(sizes), shares))


def better_end(kept: int, patches: int, ipc: float) -> Prefer:
    """Which patches to prefer when `kept` of all `patches` are, in a set of so many images per class.

    >>> better_end(200, 400, ipc=10), better_end(320, 400, ipc=10)
    ('easy', 'hard')
    """
    return "hard" if 1 - kept / patches < turning_point(ipc) else "easy"
