"""What a rule goes by when it chooses patches: labels, scores by any metric, features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, Evidence, MetricConfig
from condense_once.metrics.config import dataset_of

Scores = Callable[[str], NDArray[np.float32]]


def _no_scores(metric: str) -> NDArray[np.float32]:
    raise BadOption(f"There are no scores by {metric!r} to choose by; score the set first.")


@dataclass(frozen=True)
class Basis:
    """All that any rule may ask for, so that many selections can be made from one training run."""

    labels: NDArray[np.int64]  # [N]
    classes: int
    factor: int = 1
    dataset: str | None = None  # of which the authors may have set something by hand
    scores: Scores = _no_scores  # by the name of a metric, [N]
    features: NDArray[Any] | None = None  # [N, d]
    settings: MetricConfig = field(default_factory=MetricConfig)
    # [N] numbers that decide between equals, whatever row they are in; None: the row
    index: NDArray[np.int64] | None = None

    @classmethod
    def of_evidence(cls, data: CondensedSet, evidence: Evidence, settings: MetricConfig | None = None) -> Basis:
        """From what a training run left behind; each metric is computed once, when a rule first asks for it."""
        chosen = settings or MetricConfig.for_data(data)
        scores = cache(lambda metric: METRICS.get(metric).score(evidence, chosen))
        return cls._of(data, scores, evidence.features, chosen)

    @classmethod
    def of_scores(cls, data: CondensedSet, settings: MetricConfig | None = None) -> Basis:
        """From the scores that are stored with a set."""

        def scores(metric: str) -> NDArray[np.float32]:
            return data.scores[metric] if metric in data.scores else _no_scores(metric)

        return cls._of(data, scores, None, settings or MetricConfig.for_data(data))

    @classmethod
    def _of(cls, data: CondensedSet, scores: Scores, features: NDArray[Any] | None, settings: MetricConfig) -> Basis:
        dataset = dataset_of(data)
        return cls(data.labels, len(data.classes), data.factor, dataset, scores, features, settings, data.origin)

    def __len__(self) -> int:
        return len(self.labels)

    def ipc(self, patches: int) -> float:
        """So many patches as images for each class that there is."""
        return patches / (self.factor**2 * len(np.unique(self.labels)))

    def part(self, rows: NDArray[np.int64]) -> Basis:
        """What is known of some of the patches."""
        return replace(
            self,
            labels=self.labels[rows],
            scores=lambda metric: self.scores(metric)[rows],
            features=None if self.features is None else self.features[rows],
            index=None if self.index is None else self.index[rows],
        )

    def rows(self) -> NDArray[np.int64]:
        """All rows in the order of their index, `[N]`."""
        return np.arange(len(self)) if self.index is None else np.argsort(self.index, kind="stable")
