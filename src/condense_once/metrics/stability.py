"""When a scoring run may stop: once the ranking of the patches no longer changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.registry import METRICS, MetricInfo, Need, hardness_ranks
from condense_once.metrics.scoring_run import ScoringRun

EVERY = 10  # epochs between two rankings that are compared
NEEDS: frozenset[Need] = frozenset({"dynamics"})


class StableRanking:
    """Called after every epoch with the run so far: whether every metric ranks the patches as it did ten epochs before.

    As in pyDVL's stopping criterion, by Spearman's correlation of the two rankings: `config.until_stable` is the least that
    counts as the same.
    """

    def __init__(self, metrics: Sequence[str], config: MetricConfig) -> None:
        self._metrics = [METRICS.get(name) for name in metrics]
        self._config = config
        self._least = check_stability(self._metrics, config)
        self._before: list[NDArray[np.float64]] = []

    def __call__(self, run: ScoringRun) -> bool:
        if run.dynamics is None or run.dynamics.epochs % EVERY:
            return False
        now = [hardness_ranks(info.score(run, self._config), info.easy) for info in self._metrics]
        before, self._before = self._before, now
        return bool(before) and all(spearman(one, other) >= self._least for one, other in zip(before, now, strict=True))


def check_stability(metrics: Sequence[MetricInfo], config: MetricConfig) -> float:
    """The least correlation that ends a run; refused for metrics that cannot be computed from a shorter one."""
    for info in metrics:
        whole = config.lbpe_epochs.stop is None if "lbpe_epochs" in info.depends else info.stage == "whole"
        if info.needs != NEEDS or not whole:
            raise BadOption(
                "`until_stable` ends a run once a ranking by the dynamics of all its epochs no longer changes, as by aum or by"
                f" lbpe with `lbpe_epochs` all, which {info.name} is not; leave it out."
            )
    if config.until_stable is None:
        raise BadOption("`until_stable` must be a correlation, such as 0.99, to end a run by it.")
    return config.until_stable


def spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Spearman's ρ, given ranks in which equal scores share the mean of theirs; 1 if all are equal in both.

    >>> round(spearman(np.array([0, 1, 2, 3.0]), np.array([0, 2, 1, 3.0])), 6)
    0.8
    """
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float(np.array_equal(one, other))
    return float(np.corrcoef(one, other)[0, 1])
