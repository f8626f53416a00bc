"""The result of an evaluation: accuracies of all runs, their mean and standard deviation, and what was tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import mean, pstdev, stdev
from typing import Any, Literal

from condense_once.condensed.soft_labels import LabelUse
from condense_once.data.catalogue import SOURCES
from condense_once.text import plural


@dataclass(frozen=True)
class EvaluationRun:
    """One training run and its test. It depends on the seed and its number, not on how many repeats there are."""

    repeat: int
    accuracy: float  # at the last epoch
    per_class: tuple[float | None, ...]  # None for classes without test images
    seconds: float
    best: float | None = None  # accuracy over all tests of the run, if the protocol reports it
    train_loss: float = nan  # mean cross-entropy on the patches, in evaluation mode at the last epoch …
    test_loss: float = nan  # … and on the test images


@dataclass(frozen=True, repr=False)
class Result:
    """Its repr shows the accuracy, how it was measured and on which test images.

    >>> runs = (EvaluationRun(0, 0.42, (), 1.0), EvaluationRun(1, 0.44, (), 1.0))
    >>> Result("cifar10-idc-ipc10", 400, "quick-d53c5ec7", "convnet-d3", "cifar10-sample", 1000, 0, runs, 2.0, {})
    43.00% ± 1.41% (n = 2; 400 patches of cifar10-idc-ipc10, convnet-d3, quick-d53c5ec7) on 1000 images of cifar10-sample\
 (bundled sample)
    """

    set_name: str
    patches: int
    protocol: str  # its id
    net: str
    test: str
    test_images: int
    seed: int
    runs: tuple[EvaluationRun, ...]
    seconds: float  # wall-clock, of all repeats
    machine: Mapping[str, Any]
    ddof: Literal[0, 1] = 1  # of the standard deviation: of a sample, or of a population as the authors report it
    note: str | None = None  # why it was tested on other images than the whole test split
    labels: LabelUse = "hard"  # that networks were trained on

    @property
    def mean(self) -> float:
        return mean(run.accuracy for run in self.runs)

    @property
    def std(self) -> float:
        """NaN for a single run."""
        return self._std([run.accuracy for run in self.runs])

    @property
    def best(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the best accuracies, if the protocol reports them."""
        values = [run.best for run in self.runs if run.best is not None]
        return (mean(values), self._std(values)) if values else None

    @property
    def train_loss(self) -> float:
        return mean(run.train_loss for run in self.runs)

    @property
    def test_loss(self) -> float:
        return mean(run.test_loss for run in self.runs)

    @property
    def per_class(self) -> tuple[float | None, ...]:
        every = zip(*(run.per_class for run in self.runs), strict=True)
        return tuple(None if None in values else mean(v for v in values if v is not None) for values in every)

    @property
    def tested_on(self) -> str:
        """The test images, such as `1000 images of cifar10-sample (bundled sample)`."""
        bundled = self.test in SOURCES and SOURCES.get(self.test).load is not None
        return f"{plural(self.test_images, 'image')} of {self.test}{' (bundled sample)' if bundled else ''}"

    def __repr__(self) -> str:
        soft = " with soft labels" if self.labels == "soft" else ""
        made = f"n = {len(self.runs)}; {plural(self.patches, 'patch')} of {self.set_name}{soft}, {self.net}, {self.protocol}"
        return f"{accuracy_text(self.mean, self.std)} ({made}) on {self.tested_on}"

    def _std(self, values: Sequence[float]) -> float:
        if len(values) < 2:
            return float("nan")
        return stdev(values) if self.ddof else pstdev(values)


def accuracy_text(value: float, std: float) -> str:
    """An accuracy with its standard deviation, if there is one.

    >>> accuracy_text(0.431, 0.0052), accuracy_text(0.431, float("nan"))
    ('43.10% ± 0.52%', '43.10%')
    """
    return f"{value:.2%}" if isnan(std) else f"{value:.2%} ± {std:.2%}"
