"""What a metric is: a function of evidence, and what one has to know to use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.evidence import ONE_RUN, Evidence, Need
from condense_once.registry import Registry

Stage = Literal["early", "whole", "end", "none"]


@dataclass(frozen=True)
class MetricInfo:
    """An entry. `early` says how many epochs a metric of the early ones needs; the others count on the whole training."""

    name: str
    summary: str
    easy: Literal["low", "high"]  # which end of the scores are easy patches
    needs: frozenset[Need]
    stage: Stage  # what it looks at: early epochs, the whole run, the network in the end, or no training at all
    compute: Callable[[Evidence, MetricConfig], NDArray[Any]]
    early: Callable[[MetricConfig], int] | None = None
    depends: frozenset[str] = frozenset()  # on these of the settings, beside the seed and the epochs it needs
    labels: bool = True  # whether it looks at them
    keeps: Literal["easy", "hard"] = "easy"  # what whoever proposed it keeps, where nothing else is said

    def epochs_needed(self, settings: MetricConfig) -> int:
        """How long training has to be; where it takes several runs, all of them together."""
        if "subset runs" in self.needs:
            return settings.subset_runs * settings.subset_epochs
        if self.early is None:
            return 0 if self.stage == "none" else settings.training
        epochs = self.early(settings)
        if epochs > settings.training:
            raise BadOption(
                f"The metric {self.name!r} needs {epochs} epochs as set, but training is set to {settings.training};"
                " lengthen the training or choose earlier epochs."
            )
        return epochs

    def made_with(self, settings: MetricConfig) -> dict[str, Any]:
        """What of the settings decides its scores, as plain JSON."""
        used = {name: getattr(settings, name) for name in sorted(self.depends)}
        plain = {name: value if isinstance(value, int | float | None) else str(value) for name, value in used.items()}
        return {"epochs": self.epochs_needed(settings), "seed": settings.seed, **plain}

    def score(self, evidence: Evidence, settings: MetricConfig | None = None) -> NDArray[np.float32]:
        """One number per patch, `[N]`."""
        settings = settings or MetricConfig()
        if lacking := sorted(self.needs - evidence.parts):
            raise BadOption(
                f"The metric {self.name!r} needs {' and '.join(lacking)}, but the evidence has"
                f" {', '.join(sorted(evidence.parts)) or 'labels only'}; record what is missing first."
            )
        self._check_length(evidence, settings)
        scores = self.compute(evidence, settings)
        if scores.shape != (len(evidence),) or not np.isfinite(scores).all():
            raise BadOption(
                f"The metric {self.name!r} must give a finite number for each of {len(evidence)} patches;"
                f" it gave {list(scores.shape)}{'' if np.isfinite(scores).all() else ' with others among them'}."
            )
        return scores.astype(np.float32, copy=False)

    def _check_length(self, evidence: Evidence, settings: MetricConfig) -> None:
        needed = self.epochs_needed(settings)
        watched = {"dynamics": evidence.dynamics, "clean dynamics": evidence.clean_dynamics}
        for need, dynamics in watched.items():
            if need in self.needs and dynamics is not None and dynamics.epochs < needed:
                raise BadOption(
                    f"The metric {self.name!r} needs {needed} epochs as set, but the {need} have {dynamics.epochs};"
                    " train longer or set fewer."
                )


METRICS: Registry[MetricInfo] = Registry("metrics")


def epochs_needed(names: Iterable[str], settings: MetricConfig) -> int:
    """When the one run that serves all these metrics may stop; 0 if none of them needs it.

    >>> epochs_needed(["random", "el2n"], MetricConfig()), epochs_needed(["el2n", "aum"], MetricConfig(training=30))
    (10, 30)
    """
    chosen = [METRICS.get(name) for name in names]
    return max((info.epochs_needed(settings) for info in chosen if info.needs & ONE_RUN), default=0)
