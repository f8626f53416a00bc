"""A measurement of the theory: records of numbers, their means over runs, and which of them a chart shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import TYPE_CHECKING

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.metrics.score import score
from condense_once.registry import Registry
from condense_once.selection.select import select

if TYPE_CHECKING:
    from condense_once.nets import NetChoice
    from condense_once.train.compute_config import ComputeConfig

Record = Mapping[str, str | int | float]


@dataclass(frozen=True)
class TheoryConfig:
    """How to measure; each measurement reads the fields that it needs. Two equal configs give the same records."""

    net: NetChoice | None = None  # by default the one for the image size
    seed: int = 0
    sizes: tuple[int, ...] = ()  # patches of random balanced subsets; by default the whole set
    epochs: tuple[int, ...] = (0, 1, 3, 10, 30, 100)  # of training after which to measure; 0: untrained
    share: float = 0.1  # alignment: of the patches that are the easy, and the hard, ones
    real: Source | None = None  # alignment: real images to compare gradients with …
    real_images: int = 1000  # … of its train split, at random
    rules: tuple[str, ...] = ("yoco", "lbpe", "random-balanced")  # rademacher: selections to compare
    ratios: tuple[float, ...] = (1, 2, 5, 10)  # imbalance: patches of the largest class for one of the smallest
    protocol: str = "quick"  # imbalance: how networks are trained …
    test: Source | None = None  # … and tested; by default the known source with the set's classes
    compute: ComputeConfig | None = None

    def __post_init__(self) -> None:
        if not self.epochs or min(self.epochs) < 0:
            raise BadOption(f"`epochs` must be at least one number from 0 on, not {list(self.epochs)}.")
        if any(size < 2 for size in self.sizes):
            raise BadOption(f"`sizes` must be at least 2 patches each, not {list(self.sizes)}.")
        if not 0 < self.share <= 0.5:
            raise BadOption(f"`share` must be above 0 and at most 0.5, not {self.share:g}.")
        if any(ratio < 1 for ratio in self.ratios):
            raise BadOption(f"`ratios` must be at least 1 each, not {list(self.ratios)}.")


@dataclass(frozen=True)
class Chart:
    """One line per value of `lines` in one panel per value of `panels`, all of them columns of the records."""

    x: str
    y: str
    lines: tuple[str, ...]
    panels: tuple[str, ...] = ("set", "patches")


@dataclass(frozen=True)
class Measurement:
    """A registry entry. `keys` are the columns of a record that say what was measured, `values` the measured ones."""

    name: str
    summary: str
    claim: str  # the paper's, in a sentence
    keys: tuple[str, ...]
    values: tuple[str, ...]
    chart: Chart
    measure: Callable[[CondensedSet, TheoryConfig], Iterator[Record]]


THEORY: Registry[Measurement] = Registry("theory")


@dataclass(frozen=True)
class Findings:
    """The records of some runs of a measurement."""

    measurement: Measurement
    records: tuple[Record, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def groups(self) -> dict[tuple[str | int | float, ...], list[Record]]:
        """Records with the same keys, which differ in their run only."""
        found: dict[tuple[str | int | float, ...], list[Record]] = {}
        for record in self.records:
            found.setdefault(tuple(record[key] for key in self.measurement.keys), []).append(record)
        return found


def sized_subsets(data: CondensedSet, config: TheoryConfig) -> Iterator[CondensedSet]:
    """The whole set, or a random balanced subset of each size."""
    if too_large := [size for size in config.sizes if size > len(data)]:
        raise BadOption(f"{data.name} has {len(data)} patches, so a subset cannot have {too_large[0]}.")
    if not config.sizes:
        yield data
    for size in config.sizes:
        yield data if size == len(data) else select(data, "random-balanced", total=size, seed=config.seed)


def scored(data: CondensedSet, config: TheoryConfig) -> CondensedSet:
    """The set with LBPE scores, by a scoring run if it has none, so that rules need not train for every selection."""
    return data if "lbpe" in data.scores else score(data, "lbpe", net=config.net, compute=config.compute)


def mean_and_std(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation, which a single value does not have."""
    return mean(values), stdev(values) if len(values) > 1 else None
