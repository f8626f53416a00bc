"""Evidence: what is known of the patches of a set when they are scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.checks import check_labels

if TYPE_CHECKING:  # it needs torch, metrics do not
    from condense_once.train.dynamics import Dynamics

Need = Literal["dynamics", "clean dynamics", "probabilities", "features", "subset runs"]
ALWAYS: frozenset[Need] = frozenset({"dynamics", "probabilities", "features"})  # what any run leaves behind for nothing
ONE_RUN: frozenset[Need] = ALWAYS | {"clean dynamics"}

T = TypeVar("T")


@dataclass(frozen=True)
class SubsetRuns:
    """R trainings, each on a random part of the patches, looked at in the end."""

    included: NDArray[np.bool_]  # [R, N] whether the run was trained on the patch
    probability: NDArray[np.float32]  # [R, N] p of the label


@dataclass(frozen=True)
class Evidence:
    """Labels are always known; the rest is what one training run left behind, as far as it was asked to.

    >>> Evidence(np.array([0, 1]), features=np.eye(2)).parts
    frozenset({'features'})
    """

    labels: NDArray[np.int64]  # [N]
    dynamics: Dynamics | None = None  # from the training passes themselves
    clean_dynamics: Dynamics | None = None  # from passes in evaluation mode after every epoch
    probabilities: NDArray[np.float32] | None = None  # [N, C] of the trained network, in evaluation mode
    features: NDArray[np.float32] | None = None  # [N, d] what its last layer reads
    subset_runs: SubsetRuns | None = None

    def __post_init__(self) -> None:
        check_labels(self.labels, len(self.labels))
        for need, array in self._arrays().items():
            patches = array.shape[0 if need in ("probabilities", "features") else 1] if array.ndim == 2 else None
            if patches != len(self):
                raise BadOption(f"The {need} are of {list(array.shape)}, which does not fit {len(self)} labels.")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def parts(self) -> frozenset[Need]:
        return frozenset(self._arrays())

    def _arrays(self) -> dict[Need, NDArray[Any]]:
        """One array of each part that is there."""
        arrays: dict[Need, NDArray[Any] | None] = {
            "dynamics": None if self.dynamics is None else self.dynamics.error,
            "clean dynamics": None if self.clean_dynamics is None else self.clean_dynamics.error,
            "probabilities": self.probabilities,
            "features": self.features,
            "subset runs": None if self.subset_runs is None else self.subset_runs.probability,
        }
        return {need: array for need, array in arrays.items() if array is not None}


def given(part: T | None) -> T:
    """A part that a metric said it needs; `MetricInfo.score` sees to it that it is there."""
    if part is None:
        raise BadOption("A part of the evidence is missing that this metric does not say it needs.")
    return part
