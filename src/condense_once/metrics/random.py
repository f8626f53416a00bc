"""Random scores, the baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.registry import METRICS, MetricInfo
from condense_once.train.seeds import Stream


def random_scores(patches: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """The position of each patch in a random order, divided by N: in 0…1, without ties.

    Args:
        patches: N, at least 1.
        rng: samples the order.

    Returns:
        `[N]`; unrelated to difficulty.

    >>> sorted(random_scores(4, np.random.default_rng(0)).tolist())
    [0.0, 0.25, 0.5, 0.75]
    """
    if patches < 1:
        raise BadOption(f"`patches` must be at least 1, not {patches}.")
    return (rng.permutation(patches) / patches).astype(np.float32)


RANDOM = METRICS.add(
    MetricInfo(
        "random",
        "a random order",
        easy="low",
        needs=frozenset(),
        stage="none",
        labels=False,
        compute=lambda run, config: random_scores(len(run), config.rng(Stream.RANDOM_SCORES)),
    )
)
