"""Before a long run: how long it will take and how much memory, from a few steps on this machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from condense_once.condensing.budget import fit, measure
from condense_once.condensing.request import Request
from condense_once.condensing.running import Run, Settings
from condense_once.condensing.sharding import Shard
from condense_once.condensing.timetable import timetable
from condense_once.data.source import Source

COMPILED = 0.5  # of the time of a plain step, where PyTorch's compiler is called: not beside layers of our own
COMPILING = 120.0  # seconds


@dataclass(frozen=True)
class Plan:
    seconds: float
    bytes: int | None  # None where the system does not tell
    networks: int
    steps: int  # of every class, with each network
    step_seconds: float  # of one class


def plan_condensing(source: Source, request: Request, settings: Settings | None = None) -> Plan:
    """Time steps of the real size, but none by PyTorch's compiler; the rest is arithmetic.

    The memory is what these steps took at most.
    """
    settings = settings or Settings()
    run = Run(source, request, settings, Shard(), None, (), lambda _: None)
    learner, matcher = run.make_parts()
    compiled, matcher.compiled, learner.compiled = matcher.compiled, False, False  # which would take minutes
    times = measure(run.problem, run.recipe, learner, matcher, repeats=1)
    whole = times.of(run.recipe, timetable(run.problem, run.recipe))
    seconds, recipe = whole * COMPILED + COMPILING if compiled else whole, run.recipe
    if request.minutes is not None:
        seconds = min(seconds, 60 * request.minutes)
        recipe, _ = fit(recipe, run.problem, times, seconds, fixed=request.changes)
    return Plan(
        seconds=seconds,
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
