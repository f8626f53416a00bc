"""What can be set about metrics, and what the authors set for each kind of condensed set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import numpy as np

from condense_once.condensed.set import CondensedSet
from condense_once.data.catalogue import recognise
from condense_once.errors import BadOption
from condense_once.metrics.epochs import Epochs
from condense_once.train.seeds import numpy_generator

NeverLearnt = Literal["zero", "worst"]


class Window(NamedTuple):
    """LBPE is the mean over the `best` epochs of the first `epochs`: the paper's K and E."""

    epochs: int
    best: int


PAPER = Window(100, 10)  # the paper's choice for CIFAR-10
_PAPER_EPOCHS = Epochs.top(PAPER.best, among=PAPER.epochs)

# What the authors used, by condensation method and dataset; the first line that fits holds.
_WINDOWS = (
    ("idc", "cifar100", Window(200, 10)),
    ("idc", "imagenet*", Window(200, 10)),
    ("dream", "*", Window(200, 10)),
    ("mtt", "*", Window(10, 3)),
    ("dsa", "*", Window(100, 3)),
    ("kip", "*", Window(50, 3)),
)


def defaults_for(method: str | None, dataset: str | None) -> Window:
    """E and K for sets condensed by a method from a dataset; the paper's general choice where there is no other.

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
    """One setting of all metrics: what is set here and the evidence decide a score, not which others are asked for.

    >>> settings = MetricConfig.for_set("idc", "cifar100")
    >>> str(settings.lbpe), settings.training
    ('top10/200', 200)
    """

    training: int = PAPER.epochs  # how long the run is for metrics of all of it or of its end; the authors': 1000
    lbpe: Epochs = _PAPER_EPOCHS
    el2n: int = 10  # first epochs; as in the paper
    never_learnt: NeverLearnt = "zero"  # what forgetting gives to patches that were never right
    clusters: int | None = None  # of ssp; None: as many as classes
    subset_runs: int = 10  # of memorization: trainings on a part of the patches each
    subset_share: float = 0.7  # how large that part is, as in Feldman & Zhang
    subset_epochs: int = PAPER.epochs  # of each of them
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("training", "el2n", "clusters", "subset_epochs"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise BadOption(f"The setting {name} of metrics must be at least 1, not {value}.")
        if self.never_learnt not in ("zero", "worst"):
            raise BadOption(f"Patches that were never learnt score 'zero' or 'worst', not {self.never_learnt!r}.")
        if self.subset_runs < 2 or not 0 < self.subset_share < 1:
            raise BadOption(
                "Memorization compares at least two runs, each on more than none and less than all of the patches;"
                f" {self.subset_runs} runs on a share of {self.subset_share} do not do."
            )
        if self.seed < 0:
            raise BadOption(f"The seed must not be below zero, as {self.seed} is.")

    @classmethod
    def for_set(cls, method: str | None = None, dataset: str | None = None, *, seed: int = 0) -> MetricConfig:
        """The authors' E and K for such a set, in a run that is never shorter than the paper's."""
        window = defaults_for(method, dataset)
        return cls(max(window.epochs, PAPER.epochs), Epochs.top(window.best, among=window.epochs), seed=seed)

    @classmethod
    def for_data(cls, data: CondensedSet, *, seed: int = 0) -> MetricConfig:
        """The same for a set that says how it was condensed."""
        return cls.for_set(method_of(data), dataset_of(data), seed=seed)

    def counting(self, epochs: Epochs | None, training: int | None = None) -> MetricConfig:
        """With other epochs that count for lbpe, another length of training, or both.

        Epochs that are named alone lengthen a training that ends before them.

        >>> MetricConfig().counting(Epochs.top(10, among=200)).training
        200
        """
        chosen = epochs or self.lbpe
        length = max(self.training, chosen.stop or 0) if training is None else training
        return replace(self, lbpe=chosen, training=length)

    def rng(self, purpose: str) -> np.random.Generator:
        """A stream of its own for each purpose."""
        return numpy_generator(self.seed, purpose)


def method_of(data: CondensedSet) -> str | None:
    """What a set says it was condensed by: its method, or else the project whose format it was imported from."""
    imported = data.provenance.get("imported")
    said = data.provenance.get("method") or (imported.get("format") if isinstance(imported, Mapping) else None)
    return said if isinstance(said, str) else None


def dataset_of(data: CondensedSet) -> str | None:
    """The known dataset that a set was condensed from, by its classes."""
    known = recognise(data.classes, data.channels)
    return None if known is None else known.name
