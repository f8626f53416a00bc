"""Hyperparameters of the metrics and of their scoring run, with the authors' values for each kind of condensed set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import LabelUse, check_label_use
from condense_once.data.catalogue import recognise
from condense_once.errors import BadOption
from condense_once.metrics.epochs import Epochs
from condense_once.train.seeds import numpy_generator

NeverLearned = Literal["zero", "worst"]
Param = bool | int | float | str

# Names of the fields in files and in the keys of stored results, version 1: fields may be renamed, these never change.
STORED_NAMES = {
    "scoring_epochs": "training",
    "lbpe_epochs": "lbpe",
    "el2n_epochs": "el2n",
    "never_learned": "never_learnt",
    "ssp_clusters": "clusters",
    "subset_runs": "subset_runs",
    "subset_fraction": "subset_share",
    "subset_epochs": "subset_epochs",
    "seed": "seed",
}


class Window(NamedTuple):
    """LBPE averages over the `best` epochs among the first `epochs`: the paper's K and E."""

    epochs: int
    best: int


PAPER = Window(100, 10)  # the paper's choice for CIFAR-10
_PAPER_EPOCHS = Epochs.top(PAPER.best, among=PAPER.epochs)

# The authors' choice by condensation method and dataset; the first match applies.
_WINDOWS = (
    ("idc", "cifar100", Window(200, 10)),
    ("idc", "imagenet*", Window(200, 10)),
    ("dream", "*", Window(200, 10)),
    ("mtt", "*", Window(10, 3)),
    ("dsa", "*", Window(100, 3)),
    ("kip", "*", Window(50, 3)),
)
# Methods on whose sets the mean over all epochs was measured to select better patches: results/README.md.
_ALL_EPOCHS = ("dsa", "kip")


def defaults_for(method: str | None, dataset: str | None) -> Window:
    """E and K for sets condensed by a method from a dataset; by default the paper's general choice.

    >>> defaults_for("MTT", "cifar10")
    Window(epochs=10, best=3)
    >>> defaults_for(None, None)
    Window(epochs=100, best=10)
    """
    named = ((method or "").lower(), (dataset or "").lower())
    for condenser, source, window in _WINDOWS:
        if named[0] == condenser and fnmatchcase(named[1], source):
            return window
    return PAPER


@dataclass(frozen=True)
class MetricConfig:
    """Hyperparameters of all metrics: with the scoring run, they decide a score, whatever other metrics are computed.

    >>> config = MetricConfig.for_set("idc", "cifar100")
    >>> str(config.lbpe_epochs), config.scoring_epochs
    ('top10/200', 200)
    """

    scoring_epochs: int = (
        PAPER.epochs
    )  # length of the scoring run, for metrics of all epochs or the last; authors: 1000
    lbpe_epochs: Epochs = _PAPER_EPOCHS  # text, such as top10/100, is parsed
    el2n_epochs: int = 10  # the first ones, as in the paper
    never_learned: NeverLearned = "zero"  # forgetting score of patches that were never correct
    ssp_clusters: int | None = None  # by default one per class
    subset_runs: int = 10  # memorization: training runs, each on a random subset of the patches
    subset_fraction: float = 0.7  # size of these subsets, as in Feldman & Zhang
    subset_epochs: int = PAPER.epochs  # of each of these runs
    seed: int = 0
    until_stable: float | None = None  # end the run once rankings ten epochs apart have this correlation (Spearman's)
    labels: LabelUse = "soft"  # to train on and to compare predictions with, where a set has soft labels
    params: Mapping[str, Mapping[str, Param]] = field(
        default_factory=dict, hash=False
    )  # by metric, for `MetricInfo.params`

    def __post_init__(self) -> None:
        if isinstance(self.lbpe_epochs, str):
            object.__setattr__(self, "lbpe_epochs", Epochs.parse(self.lbpe_epochs))
        for name in ("scoring_epochs", "el2n_epochs", "ssp_clusters", "subset_epochs"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise BadOption(f"`{name}` must be at least 1, not {value}.")
        if self.never_learned not in ("zero", "worst"):
            raise BadOption(f"`never_learned` must be 'zero' or 'worst', not {self.never_learned!r}.")
        if self.subset_runs < 2 or not 0 < self.subset_fraction < 1:
            raise BadOption(
                "Memorization needs `subset_runs` of at least 2 and a `subset_fraction` between 0 and 1, not"
                f" {self.subset_runs} and {self.subset_fraction}."
            )
        if self.until_stable is not None and not 0 < self.until_stable <= 1:
            raise BadOption(
                f"`until_stable` must be a correlation above 0 and up to 1, such as 0.99, not {self.until_stable:g}."
            )
        if self.labels not in ("soft", "hard"):
            raise BadOption(f"`labels` must be soft or hard, not {self.labels!r}.")
        if self.seed < 0:
            raise BadOption(f"`seed` must not be negative, not {self.seed}.")
        if not isinstance(self.params, Mapping) or not all(isinstance(each, Mapping) for each in self.params.values()):
            raise BadOption(f"`params` must map names of metrics to their parameters, not {self.params!r}.")

    @classmethod
    def for_set(
        cls, method: str | None = None, dataset: str | None = None, *, seed: int = 0, paper: bool = False
    ) -> MetricConfig:
        """What serves such a set best, with a scoring run at least as long as the paper's.

        LBPE averages over the authors' epochs; on sets by some methods over all of them, unless those of the `paper` are asked
        for.

        >>> str(MetricConfig.for_set("dsa").lbpe_epochs), str(MetricConfig.for_set("dsa", paper=True).lbpe_epochs)
        ('all', 'top3/100')
        """
        window = defaults_for(method, dataset)
        every = (method or "").lower() in _ALL_EPOCHS and not paper
        epochs = Epochs.all() if every else Epochs.top(window.best, among=window.epochs)
        return cls(max(window.epochs, PAPER.epochs), epochs, seed=seed)

    @classmethod
    def for_data(cls, data: CondensedSet, *, seed: int = 0, paper: bool = False) -> MetricConfig:
        """The same, from the provenance of a set."""
        config = cls.for_set(method_of(data), dataset_of(data), seed=seed, paper=paper)
        return replace(config, labels=check_label_use(None, data))

    def with_epochs(self, lbpe_epochs: Epochs | None = None, scoring_epochs: int | None = None) -> MetricConfig:
        """With other epochs for LBPE, another length of the scoring run, or both.

        LBPE epochs alone extend a scoring run that is too short for them.

        >>> MetricConfig().with_epochs(Epochs.top(10, among=200)).scoring_epochs
        200
        """
        chosen = lbpe_epochs or self.lbpe_epochs
        length = max(self.scoring_epochs, chosen.stop or 0) if scoring_epochs is None else scoring_epochs
        return replace(self, lbpe_epochs=chosen, scoring_epochs=length)

    def stored(self, fields: Iterable[str] = STORED_NAMES) -> dict[str, Any]:
        """These fields as plain JSON, under the names that are stored.

        >>> MetricConfig(seed=3).stored(["lbpe_epochs", "seed"])
        {'lbpe': 'top10/100', 'seed': 3}
        """
        values = {STORED_NAMES[name]: getattr(self, name) for name in fields}
        return {
            name: value if isinstance(value, int | float | str | None) else str(value) for name, value in values.items()
        }

    def rng(self, stream: str) -> np.random.Generator:
        """A generator for one purpose."""
        return numpy_generator(self.seed, stream)


def parse_params(assignments: Iterable[str]) -> dict[str, dict[str, Param]]:
    """Parameters by metric, written as METRIC.NAME=VALUE; a value that is not a JSON number or boolean is text.

    >>> parse_params(["mine.temperature=2.5", "mine.norm=l2"])
    {'mine': {'temperature': 2.5, 'norm': 'l2'}}
    """
    params: dict[str, dict[str, Param]] = {}
    for assignment in assignments:
        target, equals, written = assignment.partition("=")
        metric, dot, name = target.strip().partition(".")
        if not (metric and dot and name and equals):
            raise BadOption(
                f"A parameter is written as METRIC.NAME=VALUE, such as mine.temperature=2, not {assignment!r}."
            )
        try:
            value = json.loads(written)
        except ValueError:
            value = written
        params.setdefault(metric, {})[name] = value if isinstance(value, bool | int | float) else written
    return params


def method_of(data: CondensedSet) -> str | None:
    """The condensation method in a set's provenance, or else the project whose format it was imported from."""
    imported = data.provenance.get("imported")
    method = data.provenance.get("method") or (imported.get("format") if isinstance(imported, Mapping) else None)
    return method if isinstance(method, str) else None


def dataset_of(data: CondensedSet) -> str | None:
    """The known dataset that a set was condensed from, by its classes."""
    known = recognise(data.classes, data.channels)
    return None if known is None else known.name
