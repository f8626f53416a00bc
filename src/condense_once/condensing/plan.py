"""Before a long run: how long it will take and how much memory, from a few steps on this machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from condense_once.condensing.config import Request
from condense_once.condensing.job import Job
from condense_once.condensing.matching.time_budget import measure
from condense_once.condensing.timetable import timetable
from condense_once.data.source import Source
from condense_once.train.hardware import ComputeConfig

COMPILED = 0.5  # of the time of a plain step, where PyTorch's compiler is called: not beside layers of our own
COMPILING = 120.0  # seconds


@dataclass(frozen=True)
class Plan:
    seconds: float
    bytes: int | None  # None where the system does not tell
    networks: int
    steps: int  # of every class, with each network
    step_seconds: float  # of one class


def plan_condensing(source: Source, request: Request, compute: ComputeConfig | None = None) -> Plan:
    """Time steps of the real size, but none by PyTorch's compiler; the rest is arithmetic.

    The memory is what these steps took at most.
    """
    job = Job(source, request, compute or ComputeConfig())
    learner, matcher = job.make_parts(job.recipe)
    compiled, matcher.compiled, learner.compiled = matcher.compiled, False, False  # which would take minutes
    times = measure(job.problem, job.recipe, learner, matcher, repeats=1)
    if compiled:
        times = replace(times, step=times.step * COMPILED)
    before, recipe = COMPILING if compiled else 0.0, job.recipe
    if request.minutes is not None:
        recipe, _ = job.fitted(times, 60 * request.minutes - before)
    return Plan(
        seconds=before + times.of(recipe, timetable(job.problem, recipe)),
        bytes=_most_memory(),
        networks=recipe.iterations,
        steps=recipe.steps,
        step_seconds=times.step,
    )


def _most_memory() -> int | None:
    """The most that this process has held at once."""
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
