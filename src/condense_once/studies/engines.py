"""Engines: where the jobs of a study run. An engine takes jobs and returns their outcomes in any order."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from condense_once.errors import BadOption, CondenseOnceError
from condense_once.studies.grid import StudyInput
from condense_once.studies.jobs import Inputs, Job
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import find_device

MAX_CRASHES = 2  # of a process running one job before the job counts as failed

EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class Outcome:
    """What a job returned, or the error that ended it."""

    job: Job
    result: Any
    error: str | None
    seconds: float


class Engine(Protocol):
    @property
    def slots(self) -> int:
        """How many jobs run at a time."""
        ...

    def submit(self, job: Job) -> None: ...

    def finished(self, seconds: float) -> Sequence[Outcome]:
        """The jobs that ended, after waiting for at most so many seconds."""
        ...

    def close(self) -> None:
        """Stop at once, together with all jobs that run."""
        ...


@dataclass(frozen=True)
class EngineOptions:
    """Which engine to use, and how its jobs compute."""

    engine: EngineName = "local"
    address: str | None = None  # of a Ray cluster
    workers: int | None = None  # local processes; by default one per core
    compute: ComputeConfig = field(default_factory=ComputeConfig)

    def __post_init__(self) -> None:
        """Refuse a device on which every job would fail, and options of the other engine."""
        device = self.compute.device
        if self.engine not in ("local", "ray"):
            raise BadOption(f"`engine` must be local or ray, not {self.engine!r}.")
        if self.engine == "local" and self.address is not None:
            raise BadOption("`address` is that of a Ray cluster; pass it together with `engine` ray.")
        if self.engine == "ray" and self.workers is not None:
            raise BadOption("A Ray cluster runs one job per CPU; leave out `workers`.")
        if self.workers is not None and self.workers < 1:
            raise BadOption(f"`workers` must be at least 1, not {self.workers}.")
        if self.engine == "local":
            find_device(device)
        elif device not in ("cpu", "cuda"):
            raise BadOption(f"On a Ray cluster `device` must be cpu or cuda, which Ray assigns, not {device}.")

    def start(self, inputs: Mapping[str, StudyInput]) -> Engine:
        if self.engine == "local":
            from condense_once.studies.local_engine import LocalEngine

            return LocalEngine(list(inputs.values()), self.compute, self.workers)
        from condense_once.studies.ray_engine import RayEngine

        return RayEngine(list(inputs.values()), self.compute, self.address)


def perform(job: Job, inputs: Inputs, compute: ComputeConfig) -> Outcome:
    """Run a job in this process; an exception becomes its outcome, so that the others go on."""
    start = time.perf_counter()
    result, error = None, None
    try:
        result = job.perform(inputs, compute)
    except Exception as problem:  # a network from another distribution can raise anything
        error = describe_error(problem)
    return Outcome(job, result, error, time.perf_counter() - start)


def describe_error(error: Exception) -> str:
    """An error in one line; ours are complete sentences already."""
    if isinstance(error, CondenseOnceError):
        return str(error)
    return " ".join("".join(traceback.format_exception_only(error)).split())
