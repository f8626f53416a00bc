"""SSP, self-supervised prototypes (Sorscher et al., Beyond Neural Scaling Laws, 2022): distance to a prototype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condense_once.kmeans import k_means
from condense_once.metrics.checks import recorded
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.registry import METRICS, MetricInfo
from condense_once.train.seeds import Stream

if TYPE_CHECKING:
    from condense_once.metrics.scoring_run import ScoringRun


def ssp(features: NDArray[np.float32], clusters: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """‖f − c‖₂ to the centre c of the patch's own cluster, of `clusters` k-means clusters of all patches.

    Labels are not used. Sorscher et al. take features of a self-supervised network and find that the number of clusters
    matters little around the number of classes; YOCO's authors take features of the network they train.

    Args:
        features: f, `[N, d]`.
        clusters: k, from 1 to N; with k = N every score is 0.
        rng: samples the initial centres.

    Returns:
        `[N]`, low for easy patches: prototypes.

    >>> ssp(np.array([[0.0], [10.0], [4.0], [10.0]]), 2, np.random.default_rng(0))
    array([2., 0., 2., 0.], dtype=float32)
    """
    return k_means(features, clusters, rng).distances.astype(np.float32)


def _score(run: ScoringRun, config: MetricConfig) -> NDArray[np.float32]:
    clusters = config.ssp_clusters or len(np.unique(run.labels))
    return ssp(recorded(run.features), clusters, config.rng(Stream.SSP))


SSP = METRICS.add(
    MetricInfo(
        "ssp",
        "distance of a patch's features to the centre of its k-means cluster",
        easy="low",
        needs=frozenset({"features"}),
        stage="end",
        depends=frozenset({"ssp_clusters"}),
        labels=False,
        compute=_score,
    )
)
