"""What a metric is: a function of a scoring run, and what one needs to know to use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption, UnknownName
from condense_once.metrics.config import MetricConfig, Param
from condense_once.registry import Registry, nearest
from condense_once.text import plural

if TYPE_CHECKING:
    from condense_once.metrics.scoring_run import ScoringRun

Need = Literal["dynamics", "clean_dynamics", "probabilities", "features", "subset_runs", "untrained"]  # of `ScoringRun`
Stage = Literal["early", "whole", "end", "none"]


@dataclass(frozen=True)
class MetricInfo:
    """A registry entry. `early` gives the number of epochs that a metric of early epochs needs; others need the whole run.

    A metric may have parameters of its own: `params` are the defaults, `MetricConfig.params[name]` overrides them, and
    `compute` finds the result in `config.params[name]`.
    """

    name: str
    summary: str
    easy: Literal["low", "high"]  # the scores of easy patches
    needs: frozenset[Need]
    stage: Stage  # what it depends on: early epochs, the whole run, the trained network, or no training at all
    compute: Callable[[ScoringRun, MetricConfig], NDArray[Any]]
    early: Callable[[MetricConfig], int] | None = None
    depends: frozenset[str] = frozenset()  # on these fields of the config, besides the seed and the epochs it needs
    labels: bool = True  # whether it uses labels
    keeps: Literal["easy", "hard"] = "easy"  # what its authors keep: the default of a rule
    ties: Literal["first", "last"] = "first"  # which of several patches with one score is kept before the others
    params: Mapping[str, Param] = field(default_factory=dict, hash=False)

    def epochs_needed(self, config: MetricConfig) -> int:
        """How many epochs it takes; with several runs, all of them together."""
        if "subset_runs" in self.needs:
            return config.subset_runs * config.subset_epochs
        if self.early is None:
            return 0 if self.stage == "none" else config.scoring_epochs
        epochs = self.early(self._with_params(config))
        if epochs > config.scoring_epochs:
            raise BadOption(
                f"The metric {self.name!r} needs {plural(epochs, 'epoch')}, but the scoring run has {config.scoring_epochs};"
                " raise `scoring_epochs` or use earlier epochs."
            )
        return epochs

    def made_with(self, config: MetricConfig) -> dict[str, Any]:
        """The part of a config that decides its scores, as plain JSON."""
        made = {"epochs": self.epochs_needed(config), "seed": config.seed, **config.stored(sorted(self.depends))}
        made |= {} if config.until_stable is None else {"until_stable": config.until_stable}
        return made | ({"params": self.parameters(config)} if self.params else {})

    def parameters(self, config: MetricConfig) -> dict[str, Param]:
        """Its own parameters: the defaults, overridden by the config."""
        given = config.params.get(self.name, {})
        for name, value in given.items():
            if name not in self.params:
                advice = nearest(name, self.params) if self.params else "it has none."
                raise UnknownName(f"The metric {self.name!r} has no parameter {name!r}; {advice}")
            default = self.params[name]
            if type(value) is not type(default) and not (type(default) is float and type(value) is int):
                expected = type(default).__name__
                raise BadOption(
                    f"The parameter {name!r} of the metric {self.name!r} is of type {expected}, not {value!r}."
                )
        return {**self.params, **given}

    def score(self, run: ScoringRun, config: MetricConfig | None = None) -> NDArray[np.float32]:
        """One score per patch, `[N]`."""
        config = self._with_params(config or MetricConfig())
        if missing := sorted(self.needs - run.parts):
            raise BadOption(
                f"The metric {self.name!r} needs {' and '.join(missing)}, but the scoring run recorded"
                f" {', '.join(sorted(run.parts)) or 'labels only'}; record it for this metric."
            )
        if config.until_stable is not None and run.dynamics is not None:  # a run that may have ended early
            config = replace(config, scoring_epochs=min(config.scoring_epochs, run.dynamics.epochs))
        self._check_length(run, config)
        scores = self.compute(run, config)
        if scores.shape != (len(run),) or not np.isfinite(scores).all():
            raise BadOption(
                f"The metric {self.name!r} must return one finite score for each of {plural(len(run), 'patch')};"
                f" it returned {list(scores.shape)}{'' if np.isfinite(scores).all() else ' with NaN or infinity'}."
            )
        return scores.astype(np.float32, copy=False)

    def _with_params(self, config: MetricConfig) -> MetricConfig:
        parameters = self.parameters(config)
        return replace(config, params={**config.params, self.name: parameters}) if parameters else config

    def _check_length(self, run: ScoringRun, config: MetricConfig) -> None:
        needed = self.epochs_needed(config)
        recorded = {"dynamics": run.dynamics, "clean_dynamics": run.clean_dynamics}
        for need, dynamics in recorded.items():
            if need in self.needs and dynamics is not None and dynamics.epochs < needed:
                raise BadOption(
                    f"The metric {self.name!r} needs {plural(needed, 'epoch')}, but the {need} have {dynamics.epochs};"
                    " record a longer run or use fewer epochs."
                )


class MetricRegistry(Registry[MetricInfo]):
    """Metrics by name, and rank averages of several by their names joined with `+`, such as `lbpe+aum`."""

    def get(self, name: str) -> MetricInfo:
        if isinstance(name, str) and "+" in name:
            return rank_average([super(MetricRegistry, self).get(part) for part in name.split("+")])
        return super().get(name)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and "+" in name:
            return all(super(MetricRegistry, self).__contains__(part) for part in name.split("+"))
        return super().__contains__(name)


def rank_average(parts: Sequence[MetricInfo]) -> MetricInfo:
    """A metric that averages the ranks of a patch by several metrics, from 0 for the easiest to 1 for the hardest."""
    name = "+".join(part.name for part in parts)
    if len({part.name for part in parts}) < len(parts):
        raise BadOption(f"The rank average {name!r} names a metric twice; leave it out once.")
    if any("subset_runs" in part.needs for part in parts):
        raise BadOption(f"The rank average {name!r} is of one scoring run, which memorization is not; leave it out.")

    def compute(run: ScoringRun, config: MetricConfig) -> NDArray[np.float64]:
        ranks = np.array([hardness_ranks(part.score(run, config), part.easy) for part in parts])
        average: NDArray[np.float64] = ranks.mean(axis=0)
        return average

    early = all(part.stage in ("early", "none") for part in parts)
    return MetricInfo(
        name,
        f"mean rank by {' and '.join(part.name for part in parts)}",
        easy="low",
        needs=frozenset[Need]().union(*(part.needs for part in parts)),
        stage="early" if early else "whole",
        compute=compute,
        early=(lambda config: max(part.epochs_needed(config) for part in parts)) if early else None,
        depends=frozenset[str]().union(*(part.depends for part in parts)),
        labels=any(part.labels for part in parts),
    )


def hardness_ranks(scores: NDArray[np.float32], easy: Literal["low", "high"]) -> NDArray[np.float64]:
    """Ranks from 0, the easiest, to 1; equal scores share the mean of their ranks.

    >>> hardness_ranks(np.float32([5, 1, 1]), "low").tolist(), hardness_ranks(np.float32([5, 1, 3]), "high").tolist()
    ([1.0, 0.25, 0.25], [0.0, 1.0, 0.5])
    """
    _, which, counts = np.unique(scores if easy == "low" else -scores, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts + 1) / 2)[which]
    return ranks / max(1, len(scores) - 1)


METRICS: Registry[MetricInfo] = MetricRegistry("metrics")
