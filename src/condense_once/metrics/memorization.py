"""Memorization (Feldman & Zhang, 2020): how much training on a patch helps to predict it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.checks import check_recorded, recorded
from condense_once.metrics.registry import METRICS, MetricInfo


def memorization(included: NDArray[np.bool_], probability: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of p[y] over the runs trained on the patch − mean of p[y] over the others, in −1…1.

    Feldman & Zhang's estimate from an ensemble of networks trained on random subsets. They train 2000; a handful gives only a
    rough estimate.

    Args:
        included: `[R, N]` whether the run was trained on the patch.
        probability: `[R, N]` p of the label after training.

    Returns:
        `[N]`, low for easy patches: those that can be predicted from the others.

    >>> included = np.array([[1, 0], [0, 1], [1, 1]], bool)
    >>> memorization(included, np.array([[1.0, 0.5], [0.25, 0.75], [0.5, 0.25]]))
    array([0.5, 0. ], dtype=float32)
    """
    check_recorded("inclusion and probability", included, probability, of="runs")
    if included.dtype != np.bool_:
        raise BadOption(f"`included` must be boolean, not {included.dtype}.")
    if not np.isfinite(probability).all():
        raise BadOption("The probabilities of the subset runs contain NaN or infinity; run them again.")
    runs = included.sum(0)
    if (one_sided := np.flatnonzero((runs == 0) | (runs == len(included)))).size:
        raise BadOption(
            f"{one_sided.size} patches (such as number {one_sided[0]}) were in all or none of {len(included)} runs;"
            " memorization compares the two, so use more runs."
        )
    inside = np.where(included, probability, 0).sum(0, dtype=np.float64) / runs
    outside = np.where(included, 0, probability).sum(0, dtype=np.float64) / (len(included) - runs)
    gained: NDArray[np.float64] = inside - outside
    return gained.astype(np.float32)


MEMORIZATION = METRICS.add(
    MetricInfo(
        "memorization",
        "gain in the probability of the label from training on the patch, over runs on random subsets",
        easy="low",
        keeps="hard",
        needs=frozenset({"subset_runs"}),
        stage="end",
        depends=frozenset({"subset_epochs", "subset_runs", "subset_fraction"}),
        compute=lambda run, _: memorization(recorded(run.subset_runs).included, recorded(run.subset_runs).probability),
    )
)
