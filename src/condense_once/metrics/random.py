"""Random numbers, the row to beat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.registry import METRICS, MetricInfo
from condense_once.train.seeds import Stream


def random_scores(patches: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """The place of each patch in a random order, as a part of their number: in 0…1 and without ties.

    Args:
        patches: N, at least 1.
        rng: draws the order.

    Returns:
        `[N]`; neither end is easy.

    >>> sorted(random_scores(4, np.random.default_rng(0)).tolist())
    [0.0, 0.25, 0.5, 0.75]
    """
    if patches < 1:
        raise BadOption(f"Random scores need at least one patch, not {patches}.")
    return (rng.permutation(patches) / patches).astype(np.float32)


RANDOM = METRICS.add(
    MetricInfo(
        "random",
        "a random order, by the seed alone",
        easy="low",
        needs=frozenset(),
        stage="none",
        labels=False,
        compute=lambda evidence, settings: random_scores(len(evidence), settings.rng(Stream.RANDOM_SCORES)),
    )
)
