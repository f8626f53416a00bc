"""Whether one rule is significantly better than another."""

from __future__ import annotations

from math import sqrt
from statistics import mean, stdev

from condense_once.studies.table import Runs

# Critical values of t, one-sided at 95 %, for 1, 2, 3 … degrees of freedom.
_CRITICAL = (
    6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75, 1.75, 1.74, 1.73, 1.73,
)  # fmt: skip
_CRITICAL_BEYOND = 1.72  # for more degrees of freedom


def is_ahead(ours: Runs, other: Runs, scoring_runs: int | None = None) -> bool:
    """A paired t-test on the repeats that both have, one-sided at 95 %.

    Repeats that share one of `scoring_runs` scoring runs are not independent: their mean counts as one pair.

    >>> is_ahead({0: 0.42, 1: 0.43, 2: 0.42}, {0: 0.30, 1: 0.32, 2: 0.29}), is_ahead({0: 0.5, 1: 0.3}, {0: 0.3, 1: 0.4})
    (True, False)
    """
    by_run: dict[int, list[float]] = {}
    for repeat in ours:
        if repeat in other:
            by_run.setdefault(repeat % scoring_runs if scoring_runs else repeat, []).append(
                ours[repeat] - other[repeat]
            )
    differences = [mean(values) for values in by_run.values()]
    degrees = len(differences) - 1
    if degrees < 1:
        return False
    error = stdev(differences) / sqrt(len(differences))
    return mean(differences) > error * (_CRITICAL[degrees - 1] if degrees <= len(_CRITICAL) else _CRITICAL_BEYOND)
