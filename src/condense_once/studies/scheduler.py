"""Scheduling: run the missing jobs of a study, alone or together with other processes on the same store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from condense_once.metrics import ScoringRun
from condense_once.studies.engines import Engine, Outcome, describe_error
from condense_once.studies.grid import Cell, StudyInput, cells_of, key_of
from condense_once.studies.jobs import EvaluationJob, Job, ScoringJob, evaluation_job, scoring_job, slimming_job
from condense_once.studies.progress import StudyProgress, missing_work
from condense_once.studies.scoring_run_io import unpack
from condense_once.studies.state import CellState, StudyState, cell_state, study_state
from condense_once.studies.store import Store, StoredSelection
from condense_once.studies.study import Study

REPORT_EVERY = 1.0  # seconds at most between two progress reports
POLL_EVERY = 5.0  # seconds between two looks at the results of other processes
CACHED_RUNS = 8  # scoring runs kept in memory

Report = Callable[[StudyProgress], None]


def run_missing(
    study: Study,
    inputs: Mapping[str, StudyInput],
    store: Store,
    engine: Engine,
    *,
    among: Collection[str] | None = None,
    progress: Report | None = None,
) -> list[CellState]:
    """Run what is missing of a study, or of its cells with the keys `among`; returns the state of every cell.

    Failures are recorded and do not stop the rest. Jobs that another process has claimed are left to it.
    """
    with closing(engine):
        state = study_state(study, inputs, store, among)
        with store.claims.heartbeat():
            _Scheduler(state, store, engine, progress or (lambda _: None)).run()
    return [cell_state(cell, store) for cell in cells_of(study, inputs)]


class _Scheduler:
    """Cells wait for jobs. When a job ends, here or in another process, its cells move on to what they need next."""

    def __init__(self, state: StudyState, store: Store, engine: Engine, report: Report) -> None:
        self._cells = [each.cell for each in state.cells]
        self._scoring = [each.cell for each in state.scoring]
        self._store, self._engine, self._report = store, engine, report
        self._jobs: dict[str, Job] = {}  # by key, until they end
        self._submitted: set[str] = set()  # those of them that our engine has
        self._waiting: dict[str, list[Cell]] = {}  # cells by the key of the job they wait for
        self._to_select: deque[Cell] = deque()  # cells whose scores are known, but not their selection
        self._done, self._failed = 0, 0
        self._work_done, self._work = 0.0, sum(missing_work(state, store).values())
        self._runs: dict[str, ScoringRun] = {}  # the last few scoring runs, by key

    def run(self) -> None:
        for cell in self._scoring:
            job = scoring_job(cell)
            if job is not None and not self._store.knows(job.key):
                self._jobs[job.key] = job
        for cell in self._cells:
            self._advance(cell)
        polled = monotonic()
        while self._jobs or self._to_select:
            self._submit()
            self._report_progress()
            for outcome in self._engine.finished(0 if self._select_some() else REPORT_EVERY):
                self._record(outcome)
            if monotonic() - polled > POLL_EVERY or not self._submitted:
                self._poll_store()
                polled = monotonic()
        self._report_progress()

    def _advance(self, cell: Cell) -> None:
        """Queue what a cell needs next: a scoring run, its selection, its slimmed set, its evaluation, or nothing."""
        selection = self._store.selection(cell.key)
        if isinstance(selection, str):
            self._failed += 1
        elif selection is None:
            self._await_scores(cell)
        elif (evaluation := self._store.evaluation(selection.evaluation_key)) is None:
            self._await_evaluation(cell, selection.rows)
        elif evaluation.error is None:
            self._done += 1
        else:
            self._failed += 1

    def _await_scores(self, cell: Cell) -> None:
        job = scoring_job(cell)
        run = None if job is None else self._store.scoring_run(job.key)
        if isinstance(run, str):
            self._failed += 1
        elif job is not None and run is None:
            self._wait(cell, job)
        else:
            self._to_select.append(cell)

    def _await_evaluation(self, cell: Cell, rows: NDArray[np.int64]) -> None:
        job = slimming_job(cell, rows)
        if job is None:
            self._wait(cell, evaluation_job(cell, rows))
        elif isinstance(self._store.slimming(job.key), str):
            self._failed += 1
        elif (slimmed := self._store.slimmed_set(job.key)) is None:
            self._wait(cell, job)
        else:
            self._wait(cell, evaluation_job(cell, rows, slimmed))

    def _wait(self, cell: Cell, job: Job) -> None:
        self._jobs.setdefault(job.key, job)
        self._waiting.setdefault(job.key, []).append(cell)

    def _select_some(self) -> bool:
        """Make pending selections, for a second at most so that workers do not wait; whether there were any."""
        start, pending = monotonic(), bool(self._to_select)
        while self._to_select:
            cell = self._to_select.popleft()
            if (found := self._select(cell)) is not None:
                self._store.add_selection(cell.key, cell.facts, found)
            self._advance(cell)
            if monotonic() - start >= REPORT_EVERY:
                break
        return pending

    def _select(self, cell: Cell) -> StoredSelection | str | None:
        """The selection of a cell, or why there is none: a run too short for the metric, scores that are NaN.

        None if the store has lost the scoring run since it was last read.
        """
        job = scoring_job(cell)
        try:
            run = ScoringRun(cell.input.data.labels) if job is None else self._scoring_run(job.key)
            if run is None:
                return None
            rows = cell.rows(run)
        except Exception as error:  # a metric from another distribution can raise anything
            return describe_error(error)
        return StoredSelection(rows, key_of(cell.evaluation_facts(rows)), None if job is None else job.key)

    def _scoring_run(self, key: str) -> ScoringRun | None:
        if key not in self._runs:
            content = self._store.scoring_bytes(key)
            if content is None:
                return None
            self._runs[key] = unpack(content)
            if len(self._runs) > CACHED_RUNS:
                del self._runs[next(iter(self._runs))]
        return self._runs[key]

    def _submit(self) -> None:
        """Submit one job more than run at a time: no worker of ours waits, and the rest is left to other processes.

        Evaluations go last because cells wait for the others; of each, the longest go first, so that none runs alone at the
        end.
        """
        for key, job in sorted(self._jobs.items(), key=_priority):
            if len(self._submitted) > self._engine.slots:
                return
            if key not in self._submitted and self._store.claims.acquire(key):
                if self._store.knows(key):  # another process was faster
                    self._store.claims.release(key)
                    self._done_elsewhere(key)
                    continue
                self._submitted.add(key)
                self._engine.submit(job)

    def _record(self, outcome: Outcome) -> None:
        job = outcome.job
        found = outcome.result if outcome.error is None else outcome.error
        self._adder(job)(job.key, job.facts, found, work=job.work, seconds=outcome.seconds)
        self._submitted.remove(job.key)
        self._store.claims.release(job.key)
        self._work_done += job.work
        self._end(job.key)

    def _adder(self, job: Job) -> Callable[..., None]:
        if isinstance(job, EvaluationJob):
            return self._store.add_evaluation
        return self._store.add_scoring_run if isinstance(job, ScoringJob) else self._store.add_slimmed_set

    def _poll_store(self) -> None:
        for key in [key for key in self._jobs if key not in self._submitted]:
            if self._store.knows(key):
                self._done_elsewhere(key)

    def _done_elsewhere(self, key: str) -> None:
        self._work -= self._jobs[key].work
        self._end(key)

    def _end(self, key: str) -> None:
        del self._jobs[key]
        for cell in self._waiting.pop(key, []):
            self._advance(cell)

    def _report_progress(self) -> None:
        left = max(self._work - self._work_done, 0.0) if self._jobs or self._to_select else 0.0
        self._report(StudyProgress(self._done, self._failed, len(self._cells), self._work_done, left))


def _priority(item: tuple[str, Job]) -> tuple[bool, float]:
    _, job = item
    return isinstance(job, EvaluationJob), -job.work
