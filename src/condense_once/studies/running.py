"""Running a study: only what is missing, whatever happens in between, with others on the same store if there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from condense_once.metrics.evidence import Evidence
from condense_once.select.basis import Basis
from condense_once.studies.engines import Done, Engine
from condense_once.studies.grid import Cell, Subject, Watch, cells_of
from condense_once.studies.jobs import Job, WatchJob, evaluate_job, evaluation_work, unpack, watch_job
from condense_once.studies.store import Measured, Selected, Store
from condense_once.studies.study import Study

LISTEN = 1.0  # seconds at most between two looks at what other processes have done
HELD = 8  # scoring runs whose evidence is kept in memory


@dataclass(frozen=True)
class State:
    """What a store knows of a cell."""

    cell: Cell
    selected: Selected | None = None
    measured: Measured | None = None
    error: str | None = None  # of its evaluation, or of the scoring run it would need

    @property
    def done(self) -> bool:
        return self.measured is not None and self.error is None


@dataclass(frozen=True)
class Progress:
    """How far a study is. Cells that keep the same patches share one evaluation."""

    done: int
    failed: int
    cells: int
    work_done: float  # by this process
    work_left: float


def state_of(cell: Cell, store: Store) -> State:
    selected = store.selection(cell.key)
    if selected is None:
        return State(cell, error=None if cell.watch is None else store.evidence_error(cell.watch.key))
    measured = store.evaluation(selected.evaluation)
    return State(cell, selected, measured, None if measured is None else measured.error)


def run_study(
    study: Study,
    subjects: Mapping[str, Subject],
    store: Store,
    engine: Engine,
    *,
    progress: Callable[[Progress], None] | None = None,
) -> list[State]:
    """Measure what is missing of a study, and return what is known of every cell.

    What fails is recorded, and the rest goes on. What another process has claimed is waited for.
    """
    cells = list(cells_of(study, subjects))
    run = _Run(cells, scored_cells(study, subjects), store, engine, progress)
    try:
        with store.alive():
            run.go()
    finally:
        engine.close()
    return [state_of(cell, store) for cell in cells]


def scored_cells(study: Study, subjects: Mapping[str, Subject]) -> list[Cell]:
    """For a study that evaluates nothing, one cell for each set, of which only the scores are of use."""
    if study.sizes:
        return []
    return list(cells_of(study.replace(rules=study.rules[:1], sizes=("100%",), repeats=1), subjects))


class _Run:
    """What is missing is asked of the store again and again: it alone knows what all processes have done."""

    def __init__(
        self,
        cells: Iterable[Cell],
        scored: Iterable[Cell],
        store: Store,
        engine: Engine,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._store, self._engine, self._progress = store, engine, progress
        self._open, self._scored = list(cells), list(scored)
        self._cells = len(self._open)
        self._under_way: dict[str, Job] = {}
        self._failed, self._work_done = 0, 0.0
        self._evidence = lru_cache(HELD)(self._read_evidence)

    def go(self) -> None:
        while missing := self._missing():
            self._tell()
            self._submit(missing)
            for done in self._engine.finished(LISTEN):
                self._record(done)
        self._tell()

    def _missing(self) -> dict[str, Job]:
        """The jobs that can be done now, by their keys; cells that nothing can be done for any more are closed."""
        jobs: dict[str, Job] = {}
        for cell in self._scored:
            if (scoring := self._scoring(cell)) is not None:
                jobs[scoring.key] = scoring
        still_open = []
        for cell in self._open:
            if (job := self._next_job(cell)) is None:
                self._failed += state_of(cell, self._store).error is not None
            else:
                jobs.setdefault(job.key, job)
                still_open.append(cell)
        self._open = still_open
        return jobs

    def _next_job(self, cell: Cell) -> Job | None:
        selected = self._store.selection(cell.key)
        if selected is None:
            if (scoring := self._scoring(cell)) is not None:
                return scoring
            labels = Evidence(cell.subject.data.labels)  # all that is known without a scoring run
            evidence = labels if cell.watch is None else self._evidence(cell.watch)
            if evidence is None:
                return None  # its scoring run failed
            rows = cell.rows(Basis.of_evidence(cell.subject.data, evidence, cell.settings))
            selected = Selected(rows, evaluate_job(cell, rows).key)
            self._store.add_selection(cell.key, cell.facts, selected)
        known = self._store.evaluation(selected.evaluation)
        return evaluate_job(cell, selected.rows) if known is None else None

    def _scoring(self, cell: Cell) -> WatchJob | None:
        """The scoring run that a cell waits for."""
        watch = cell.watch
        if watch is None or self._store.knows(watch.key):
            return None
        return watch_job(cell, watch)

    def _read_evidence(self, watch: Watch) -> Evidence | None:
        content = self._store.evidence(watch.key)
        return None if content is None else unpack(content)

    def _submit(self, missing: Mapping[str, Job]) -> None:
        """As many as run at a time and one more, so that no process of ours waits and the rest is left to others."""
        for key, job in missing.items():
            if len(self._under_way) > self._engine.slots:
                return
            if key not in self._under_way and self._store.claim(key):
                if self._store.knows(key):  # another process was quicker
                    self._store.release(key)
                    continue
                self._under_way[key] = job
                self._engine.submit(job)

    def _record(self, done: Done) -> None:
        job = done.job
        found = done.found if done.error is None else done.error
        keep = self._store.add_evidence if isinstance(job, WatchJob) else self._store.add_evaluation
        keep(job.key, job.facts, found, work=job.work, seconds=done.seconds)
        del self._under_way[job.key]
        self._store.release(job.key)
        self._work_done += job.work

    def _tell(self) -> None:
        if self._progress is not None:
            left = {cell.key: evaluation_work(cell) for cell in self._open}
            closed = self._cells - len(self._open)
            self._progress(
                Progress(closed - self._failed, self._failed, self._cells, self._work_done, sum(left.values()))
            )
