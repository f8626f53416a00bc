"""AUM, area under the margin (Pleiss et al., 2020): mean margin of the label over the next best class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics.checks import check_recorded, recorded
from condense_once.metrics.epochs import mean_over
from condense_once.metrics.registry import METRICS, MetricInfo


def aum(margin: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean over t of p_t[y] − max_{k≠y} p_t[k], in −1…1.

    Computed from probabilities, as by YOCO's authors; Pleiss et al. use logits.

    Args:
        margin: `[E, N]` p of the label minus the largest other p.

    Returns:
        `[N]`, **high** for easy patches.

    >>> aum(np.array([[-0.5, 0.0], [0.75, 0.5]], np.float32))
    array([0.125, 0.25 ], dtype=float32)
    """
    check_recorded("margin", margin)
    return mean_over(margin, np.arange(len(margin)), "margin")


AUM = METRICS.add(
    MetricInfo(
        "aum",
        "mean margin of the label over the next best class, over the whole run; high is easy",
        easy="high",
        keeps="hard",
        needs=frozenset({"dynamics"}),
        stage="whole",
        compute=lambda run, config: aum(recorded(run.dynamics).margin[: config.scoring_epochs]),
    )
)
