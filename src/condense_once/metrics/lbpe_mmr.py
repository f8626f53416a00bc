"""LBPE with maximal marginal relevance (Carbonell & Goldstein, 1998): easy patches that are unlike those kept before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.checks import check_features, check_labels, recorded
from condense_once.metrics.classwise import positions
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.lbpe import LBPE
from condense_once.metrics.registry import METRICS, MetricInfo, hardness_ranks
from condense_once.metrics.scoring_run import ScoringRun


def lbpe_mmr(
    error: NDArray[np.float32], features: NDArray[np.float32], labels: NDArray[Any], weight: float = 0.5
) -> NDArray[np.float32]:
    """The position at which a patch is picked within its class, divided by N.

    The easiest patch of a class comes first; then each step picks the patch with the largest

        (1 − weight) · ease − weight · similarity

    where ease is the rank by error within the class, from 1 for the easiest to 0, and similarity the largest cosine with a
    picked patch, of features minus their mean over the class. Ties go to the lowest index. Weight 0 gives the order by error.

    Args:
        error: `[N]`, such as LBPE scores; low for easy patches.
        features: `[N, d]`.
        labels: `[N]`.
        weight: of similarity, from 0 to 1.

    Returns:
        `[N]`, low for patches picked first.

    >>> features = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, -0.1]])
    >>> lbpe_mmr(np.array([0.1, 0.2, 0.3, 0.4]), features, np.zeros(4, int))  # the second is much like the first
    array([0.  , 0.5 , 0.25, 0.75], dtype=float32)
    """
    check_features(features)
    check_labels(labels, len(features))
    if error.shape != (len(labels),) or not 0 <= weight <= 1:
        raise BadOption(
            f"MMR takes one error for each of {len(labels)} patches and a `weight` from 0 to 1, not {list(error.shape)} and"
            f" {weight:g}."
        )
    places = np.empty(len(labels))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        ease = 1 - hardness_ranks(error[members], "low")
        places[members] = positions(_greedy(ease, features[members].astype(np.float64), weight))
    return (places / len(labels)).astype(np.float32)


def _greedy(ease: NDArray[np.float64], features: NDArray[np.float64], weight: float) -> NDArray[np.int64]:
    """The order in which the members of a class are picked, `[n]`."""
    centred = features - features.mean(0)
    units = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    order = np.empty(len(ease), np.int64)
    similarity = np.full(len(ease), -np.inf)  # to the most similar picked patch
    picked = int(ease.argmax())
    for place in range(len(order)):
        order[place] = picked
        similarity = np.maximum(similarity, units @ units[picked])
        gain = (1 - weight) * ease - weight * similarity
        gain[order[: place + 1]] = -np.inf  # never again
        picked = int(gain.argmax())
    return order


def _score(run: ScoringRun, config: MetricConfig) -> NDArray[np.float32]:
    weight = float(config.params["lbpe-mmr"]["weight"])
    return lbpe_mmr(LBPE.score(run, config), recorded(run.features), run.labels, weight)


LBPE_MMR = METRICS.add(
    MetricInfo(
        "lbpe-mmr",
        "position at which a patch is picked for low LBPE and little likeness to those picked before",
        easy="low",
        needs=frozenset({"dynamics", "features"}),
        stage="end",
        depends=frozenset({"lbpe_epochs"}),
        compute=_score,
        params={"weight": 0.5},
    )
)
