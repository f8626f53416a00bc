"""CCS, coverage-centric coreset selection (Zheng et al., 2023): exclude the hardest, then sample from strata of difficulty.

The cutoff depends on the size, so selections of different sizes are not prefixes of one order.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics.config import dataset_of
from condense_once.selection.selectors.registry import SELECTORS, SelectorInfo, images_per_class
from condense_once.train.seeds import Stream

STRATA = 50  # as in the CCS paper and in YOCO's code

# The fraction of hardest patches that YOCO's authors exclude, by images per class before and after.
CUTOFFS: dict[str, dict[tuple[float, float], float]] = {
    "cifar10": {(10, 1): 0.3, (10, 2): 0.1, (10, 5): 0.0, (50, 1): 0.3, (50, 2): 0.3, (50, 5): 0.3, (50, 10): 0.1},
    "cifar100": {
        **{(10, 1): 0.5, (10, 2): 0.4, (10, 5): 0.2, (20, 1): 0.5, (20, 2): 0.5, (20, 5): 0.3},
        **{(50, 1): 0.5, (50, 2): 0.5, (50, 5): 0.5, (50, 10): 0.3},
    },
    "imagenet10": {(10, 1): 0.3, (10, 2): 0.2, (10, 5): 0.1, (20, 1): 0.3, (20, 2): 0.3, (20, 5): 0.2},
}


def cutoff_for(dataset: str | None, ipc: float, kept_ipc: float) -> float:
    """The fraction of hardest patches to exclude, going from `ipc` images per class to `kept_ipc`.

    The authors' where they give one. Theirs depend only on the fraction kept, except for CIFAR-100 at a fifth (0.4 of ten images,
    0.3 of fifty); so other sizes are interpolated linearly, down to 0 where everything is kept. Other datasets get the mean of
    the three.

    >>> cutoff_for("cifar10", 10, 1), cutoff_for("cifar10", 20, 3)
    (0.3, 0.2)
    """
    if dataset not in CUTOFFS:
        return mean(cutoff_for(known, ipc, kept_ipc) for known in CUTOFFS)
    table = CUTOFFS[dataset]
    if (ipc, kept_ipc) in table:
        return table[ipc, kept_ipc]
    fractions = sorted({after / before for before, after in table})
    cutoffs = [mean(cut for (before, after), cut in table.items() if after / before == kept) for kept in fractions]
    return round(
        float(np.interp(kept_ipc / ipc, [*fractions, 1.0], [*cutoffs, 0.0])), 9
    )  # 0.2, not 0.19999999999999998


def ccs_rows(
    scores: NDArray[Any], count: int, cutoff: float, rng: np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Keep `count` rows: exclude the hardest, then keep as nearly as possible the same number of every stratum.

    Args:
        scores: `[N]`, high for hard patches.
        count: how many to keep, from 0 to N.
        cutoff: the fraction of hardest patches to exclude, as far as enough are left.
        rng: samples within each stratum, as in the CCS paper; without it, the hardest of each stratum are kept, as in YOCO's
            code.

    Returns:
        `[count]`, ascending.

    >>> ccs_rows(np.array([0.1, 0.9, 0.2, 0.5, 0.6, 0.3]), 3, cutoff=0.2).tolist()
    [3, 4, 5]
    """
    if not 0 <= count <= len(scores):
        raise BadOption(f"`count` must be from 0 to {len(scores)}, the number of patches, not {count}.")
    if not 0 <= cutoff <= 1:
        raise BadOption(f"`cutoff` must be from 0 to 1, not {cutoff}.")
    hardest_first = np.argsort(-scores, kind="stable")
    left = hardest_first[min(int(cutoff * len(scores)), len(scores) - count) :]
    strata = _strata(scores[left])
    counts = even_counts(np.bincount(strata, minlength=STRATA), count)
    kept = []
    for stratum in np.flatnonzero(counts):
        members = left[strata == stratum]
        chosen = members if rng is None else rng.permutation(np.sort(members))
        kept.append(chosen[: counts[stratum]])
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)


def even_counts(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """How many to keep of each stratum: as even as their sizes allow, smallest stratum first.

    >>> even_counts(np.array([5, 0, 3, 10, 2]), 10).tolist()
    [3, 0, 2, 3, 2]
    """
    counts = np.zeros_like(sizes)
    for done, stratum in enumerate(np.argsort(sizes, kind="stable")):
        counts[stratum] = min(sizes[stratum], count // (len(sizes) - done))
        count -= int(counts[stratum])
    return counts


def _strata(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The stratum of each score: `STRATA` bins of equal width, from the minimum to slightly above the maximum."""
    if not len(scores):
        return np.empty(0, np.int64)
    low, high = float(scores.min()), float(scores.max()) * 1.0001
    edges = low + (high - low) / STRATA * np.arange(STRATA)
    return np.searchsorted(edges, scores, side="right") - 1 if high > low else np.zeros(len(scores), np.int64)


def _pick(
    values: NDArray[Any], count: int, *, data: CondensedSet, total: int, rng: np.random.Generator | None
) -> NDArray[np.int64]:
    cutoff = cutoff_for(dataset_of(data), images_per_class(data, len(data)), images_per_class(data, total))
    return ccs_rows(values, count, cutoff, rng)


CCS = SELECTORS.add(
    SelectorInfo(
        "ccs",
        "stratified by EL2N, hardest excluded, sampled within strata",
        metric="el2n",
        pick=_pick,
        stream=Stream.CCS,
    )
)
CCS_FIXED = SELECTORS.add(
    SelectorInfo(
        "ccs-fixed", "CCS as in YOCO's program: the hardest of each stratum, nothing sampled", metric="el2n", pick=_pick
    )
)
