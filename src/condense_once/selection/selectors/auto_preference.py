"""Easy or hard? By the paper's figure 3, hard patches are better at low pruning ratios, easy ones at high ratios."""

from __future__ import annotations

import numpy as np

from condense_once.selection.order import Prefer

# Images per class, and the pruning ratio at which both are equally good: CIFAR-10 condensed to 10 and 50, and full CIFAR-10.
TURNING_POINTS = ((10, 0.24), (50, 0.38), (5000, 0.72))


def turning_point(ipc: float) -> float:
    """The pruning ratio from which on easy patches are better, for a set of so many images per class.

    Interpolated linearly over the logarithm of the size, constant outside the known range.

    >>> [round(turning_point(ipc), 6) for ipc in (1, 10, 50, 500, 5000)]
    [0.24, 0.24, 0.38, 0.55, 0.72]
    """
    sizes, ratios = zip(*TURNING_POINTS, strict=True)
    return float(np.interp(np.log(ipc), np.log(sizes), ratios))


def better_preference(kept: int, patches: int, ipc: float) -> Prefer:
    """Which patches to prefer when keeping `kept` of `patches`, in a set of `ipc` images per class.

    >>> better_preference(200, 400, ipc=10), better_preference(320, 400, ipc=10)
    ('easy', 'hard')
    """
    return "hard" if 1 - kept / patches < turning_point(ipc) else "easy"
