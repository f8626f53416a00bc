"""CCS, coverage-centric selection (Zheng et al., 2023): drop the hardest, then keep some of every degree of hardness.

How much to drop depends on the size asked, so there is one selection for each size and no order of which they are prefixes.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption

STRATA = 50  # as in the original and in the authors' program

# The share of hardest patches that YOCO's authors drop, by images per class before and after.
CUTOFFS: dict[str, dict[tuple[float, float], float]] = {
    "cifar10": {(10, 1): 0.3, (10, 2): 0.1, (10, 5): 0.0, (50, 1): 0.3, (50, 2): 0.3, (50, 5): 0.3, (50, 10): 0.1},
    "cifar100": {
        **{(10, 1): 0.5, (10, 2): 0.4, (10, 5): 0.2, (20, 1): 0.5, (20, 2): 0.5, (20, 5): 0.3},
        **{(50, 1): 0.5, (50, 2): 0.5, (50, 5): 0.5, (50, 10): 0.3},
    },
    "imagenet10": {(10, 1): 0.3, (10, 2): 0.2, (10, 5): 0.1, (20, 1): 0.3, (20, 2): 0.3, (20, 5): 0.2},
}


def cutoff(dataset: str | None, ipc: float, kept_ipc: float) -> float:
    """The share of hardest patches to drop, going from `ipc` images per class to `kept_ipc`.

    The authors' where they name one. Their numbers hang on the share kept alone, but for CIFAR-100 at a fifth (0.4 of ten
    images, 0.3 of fifty); so elsewhere it is read off the straight lines between them, down to 0 where all is kept. For
    other datasets it is the mean of the three.

    >>> cutoff("cifar10", 10, 1), cutoff("cifar10", 20, 3)
    (0.3, 0.2)
    """
    if dataset not in CUTOFFS:
        return mean(cutoff(known, ipc, kept_ipc) for known in CUTOFFS)
    table = CUTOFFS[dataset]
    if (ipc, kept_ipc) in table:
        return table[ipc, kept_ipc]
    shares = sorted({after / before for before, after in table})
    drops = [mean(drop for (before, after), drop in table.items() if after / before == share) for share in shares]
    return round(float(np.interp(kept_ipc / ipc, [*shares, 1.0], [*drops, 0.0])), 9)  # 0.2, not 0.19999999999999998


def ccs_rows(
    scores: NDArray[Any], count: int, drop: float, rng: np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Keep `count` rows: the hardest are dropped, and the strata of the others get even shares.

    Args:
        scores: `[N]`, high for hard patches.
        count: how many to keep, from 0 to N.
        drop: the share of hardest patches that goes first, as far as enough are left.
        rng: draws within each stratum, as in the original; without it, the hardest of each stratum are kept, as in the
            authors' program.

    Returns:
        `[count]`, ascending.

    >>> ccs_rows(np.array([0.1, 0.9, 0.2, 0.5, 0.6, 0.3]), 3, drop=0.2).tolist()
    [3, 4, 5]
    """
    if not 0 <= count <= len(scores):
        raise BadOption(f"{count} of {len(scores)} patches cannot be kept.")
    if not 0 <= drop <= 1:
        raise BadOption(f"The share of hardest patches to drop lies from 0 to 1, not {drop}.")
    hardest_first = np.argsort(-scores, kind="stable")
    left = hardest_first[min(int(drop * len(scores)), len(scores) - count) :]
    strata = _strata(scores[left])
    shares = even_shares(np.bincount(strata, minlength=STRATA), count)
    kept = []
    for stratum in np.flatnonzero(shares):
        members = left[strata == stratum]
        chosen = members if rng is None else rng.permutation(np.sort(members))
        kept.append(chosen[: shares[stratum]])
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)


def even_shares(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """How many each stratum gives: as near to the same as their sizes allow, the smallest asked first.

    >>> even_shares(np.array([5, 0, 3, 10, 2]), 10).tolist()
    [3, 0, 2, 3, 2]
    """
    shares = np.zeros_like(sizes)
    for done, stratum in enumerate(np.argsort(sizes, kind="stable")):
        shares[stratum] = min(sizes[stratum], count // (len(sizes) - done))
        count -= int(shares[stratum])
    return shares


def _strata(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The stratum of each score: `STRATA` parts of the same width, from the least to a little above the largest."""
    if not len(scores):
        return np.empty(0, np.int64)
    low, high = float(scores.min()), float(scores.max()) * 1.0001
    edges = low + (high - low) / STRATA * np.arange(STRATA)
    return np.searchsorted(edges, scores, side="right") - 1 if high > low else np.zeros(len(scores), np.int64)
