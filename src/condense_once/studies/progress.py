"""How far a study is, how much work is left, and how long that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from condense_once.evaluation.cost import estimate_evaluation
from condense_once.studies.grid import StudyInput, cells_of, key_of, scoring_cells
from condense_once.studies.jobs import evaluation_work, scoring_job, slimming_work
from condense_once.studies.state import CellState, StudyState
from condense_once.studies.store import Store
from condense_once.studies.study import Study


@dataclass(frozen=True)
class StudyProgress:
    """Counts are in cells; cells that keep the same patches share one evaluation. Work is in multiplications."""

    done: int
    failed: int
    total: int
    work_done: float  # by this process
    work_left: float


JobKind = Literal["scoring run", "slimming", "evaluation"]


class MissingJob(NamedTuple):
    net: str
    work: float
    kind: JobKind


def missing_jobs(state: StudyState, store: Store) -> dict[str, MissingJob]:
    """What is left to run, by key, as far as it is known before the selections are made."""
    missing = [each for each in state.cells if not each.done and each.error is None]
    jobs = {
        _evaluation_key(each): MissingJob(each.cell.net, evaluation_work(each.cell), "evaluation") for each in missing
    }
    for each in missing:
        key = _slimming_key(each)
        if key is not None and not store.knows(key):
            jobs[key] = MissingJob(each.cell.slimmed_by, slimming_work(each.cell), "slimming")
    for each in (*(each for each in missing if each.selection is None), *state.scoring):
        job = scoring_job(each.cell)
        if job is not None and not store.knows(job.key):
            jobs[job.key] = MissingJob(job.net, job.work, "scoring run")
    return jobs


def missing_work(state: StudyState, store: Store) -> dict[str, float]:
    """Work left per network."""
    work: dict[str, float] = {}
    for job in missing_jobs(state, store).values():
        work[job.net] = work.get(job.net, 0.0) + job.work
    return work


def estimate_seconds(study: Study, inputs: Mapping[str, StudyInput], state: StudyState, store: Store) -> float:
    """How long the missing runs take in one process."""
    work = missing_work(state, store)
    return sum(amount * _seconds_per_work(net, study, inputs, store) for net, amount in work.items())


def _evaluation_key(state: CellState) -> str:
    """The key of a cell's evaluation; the cell's own key while its selection is unknown."""
    if state.selection is not None:
        return state.selection.evaluation_key
    cell = state.cell
    return key_of(cell.evaluation_facts(np.arange(cell.patches))) if cell.whole else cell.key


def _slimming_key(state: CellState) -> str | None:
    """The key of the slimming of a cell; while its selection is unknown, one that is the same for cells that will share it."""
    cell = state.cell
    if state.selection is not None or cell.slimming is None:
        return state.slimming_key
    facts = cell.facts
    return key_of({name: facts[name] for name in facts if name not in {*cell.evaluated_by, "patches"}})


def _seconds_per_work(net: str, study: Study, inputs: Mapping[str, StudyInput], store: Store) -> float:
    """From earlier runs in the store, or from a few timed training steps."""
    if (measured := store.seconds_per_work(net)) is not None:
        return measured
    cell = next(iter((*scoring_cells(study, inputs), *cells_of(study, inputs))))
    part, images = cell.input.data.take(slice(cell.patches)), len(cell.input.test.test.labels)
    plan = estimate_evaluation(part, images, protocol=cell.protocol, net=net, repeats=1)
    return plan.seconds / evaluation_work(replace(cell, net=net))
