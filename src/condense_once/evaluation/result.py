"""What came of an evaluation: every training with its test, their mean and their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, pstdev, stdev
from typing import Any, Literal


@dataclass(frozen=True)
class Run:
    """One training and its test. A repeat depends on its number and the seed alone, not on how many others there are."""

    repeat: int
    accuracy: float  # share of the test images that are right, at the last epoch
    per_class: tuple[float | None, ...]  # None where there are no test images
    seconds: float
    best: float | None = None  # of all looks at the test split, where the protocol reports it


@dataclass(frozen=True)
class Result:
    set_name: str
    patches: int
    protocol: str  # its id
    net: str
    test: str
    test_images: int
    seed: int
    runs: tuple[Run, ...]
    seconds: float  # of all repeats together, by the clock
    machine: Mapping[str, Any]
    deviation: Literal["sample", "population"] = "sample"  # by n − 1, or by n as the authors have it

    @property
    def mean(self) -> float:
        return mean(run.accuracy for run in self.runs)

    @property
    def std(self) -> float:
        """Not a number for a single run."""
        return self._std([run.accuracy for run in self.runs])

    @property
    def best(self) -> tuple[float, float] | None:
        """Mean and deviation of the best looks, where the protocol reports them."""
        looks = [run.best for run in self.runs if run.best is not None]
        return (mean(looks), self._std(looks)) if looks else None

    @property
    def per_class(self) -> tuple[float | None, ...]:
        every = zip(*(run.per_class for run in self.runs), strict=True)
        return tuple(None if None in values else mean(v for v in values if v is not None) for values in every)

    def _std(self, values: Sequence[float]) -> float:
        if len(values) < 2:
            return float("nan")
        return stdev(values) if self.deviation == "sample" else pstdev(values)
