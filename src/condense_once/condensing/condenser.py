"""What the runner knows of a condenser: a run cut into work items that can be saved between any two of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.distributed import World
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.train.compute_config import ComputeConfig

State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """Everything a condenser is built from."""

    source: Source
    config: CondenseConfig
    compute: ComputeConfig
    world: World
    experts: Path | None = None  # the folder of trained networks; by default `experts` in the folder of datasets


@dataclass(frozen=True)
class CondenseEstimate:
    """The cost of a run on this machine."""

    seconds: float
    bytes: int | None  # peak memory; None where the system does not report it
    iterations: int
    steps: int  # per class and iteration
    step_seconds: float  # of one class
    seconds_range: tuple[float, float] | None = None  # by the fastest and slowest measurements, if there were several


class Condenser(ABC):
    """One condensing run of one method.

    The runner calls `fit_to_time` (given a time budget) and `initialise`, or `restore`; then `advance` until `done == total`
    or the time is up; then `result`. Checkpoints, resuming, signals, callbacks, processes and the file are its business. Every
    random number must be a function of the seed and `done`, so that a resumed run equals an uninterrupted one.
    """

    done = 0  # work items

    @property
    @abstractmethod
    def total(self) -> int:
        """Work items of the whole run."""

    @property
    @abstractmethod
    def recipe_json(self) -> Mapping[str, Any]:
        """Everything that decides the result beside the config, as plain JSON; a checkpoint hands it back to the builder."""

    @abstractmethod
    def initialise(self) -> None:
        """Set the images to where the run starts from."""

    @abstractmethod
    def advance(self) -> float | None:
        """Do the next work item, count it in `done`, and return its loss if it has one."""

    @abstractmethod
    def state(self) -> State:
        """The arrays that, with `done`, resume the run."""

    @abstractmethod
    def restore(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        """Resume from a saved state."""

    @abstractmethod
    def result(self) -> CondensedSet:
        """The images as they are, with soft labels, value space and ranking if the method has them."""

    @abstractmethod
    def fit_to_time(self, seconds: float) -> str:
        """Shorten the run to a time budget, before it starts; return a sentence that says how.

        Measuring counts towards the budget. Refuse one in which nothing can be done (`too_short.refuse_too_short`).
        """

    def estimate(self) -> CondenseEstimate:
        """The cost of the run, from a short measurement."""
        raise BadOption(f"{type(self).__name__} cannot estimate its cost.")

    def replan(self, iterations: int) -> None:  # noqa: B027  # a method may have nothing to lengthen
        """Change the number of outer iterations while the run goes on, as far as the method has so many."""

    @property
    def iteration(self) -> int:
        """Outer iterations completed, for callbacks: networks, where a method has many."""
        return self.done

    @property
    def steps(self) -> int:
        """Image updates of every class completed: the x-axis of the loss curve."""
        return self.done

    @property
    def images_per_item(self) -> float:
        """Images that a work item processes on average, for the speed that is displayed."""
        return 0.0

    @property
    def is_sync_point(self) -> bool:
        """Whether all processes reach this point, so that they may exchange data here."""
        return True

    def synchronise(self) -> None:  # noqa: B027  # nothing to exchange in a single process
        """Collect the state of all processes in each of them; called at sync points."""

    @property
    def is_finite(self) -> bool:
        """Whether the state is worth saving: no NaN, no infinity."""
        return all(np.isfinite(array).all() for array in self.state().values() if array.dtype.kind == "f")
