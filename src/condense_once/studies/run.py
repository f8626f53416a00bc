"""Running a study: only what is missing, whatever happens in between, with others on the same store if there are any."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import monotonic

import numpy as np

from condense_once.data.catalogue import SOURCES
from condense_once.errors import BadFile
from condense_once.metrics import ScoringRun
from condense_once.studies.engines import Done, Engine, complaint
from condense_once.studies.grid import Cell, Subject, Watch, cells_of, computed_in, key_of
from condense_once.studies.jobs import Job, WatchJob, evaluate_job, evaluation_work, watch_job
from condense_once.studies.serialize import unpack
from condense_once.studies.store import Measured, Scoring, Selected, Store
from condense_once.studies.study import Axis, Study

LISTEN = 1.0  # seconds at most without a word of progress
LOOK = 5.0  # seconds between two looks at what other processes have done
HELD = 8  # scoring runs whose evidence is kept in memory


@dataclass(frozen=True)
class State:
    """What a store knows of a cell."""

    cell: Cell
    selected: Selected | None = None
    measured: Measured | None = None
    error: str | None = None  # of its evaluation, of its selection, or of the scoring run it would need
    scoring: Scoring | None = None  # the run that its patches were scored by, or would be

    @property
    def accuracy(self) -> float | None:
        if self.measured is None or self.measured.result is None:
            return None
        return float(self.measured.result["accuracy"])

    @property
    def done(self) -> bool:
        return self.accuracy is not None


@dataclass(frozen=True)
class Progress:
    """How far a study is. Cells that keep the same patches share one evaluation."""

    done: int
    failed: int
    cells: int
    work_done: float  # by this process
    work_left: float


def grouped(states: Iterable[State], axes: Sequence[Axis]) -> dict[tuple[str, ...], list[State]]:
    """States by where they are on some axes, in the order of the study."""
    groups: dict[tuple[str, ...], list[State]] = {}
    for state in states:
        groups.setdefault(tuple(state.cell.at(axis) for axis in axes), []).append(state)
    return groups


def state_of(cell: Cell, store: Store) -> State:
    selected = store.selection(cell.key)
    if selected is None:
        return scored_state(cell, store)
    if isinstance(selected, str):
        return replace(scored_state(cell, store), error=selected)
    measured = store.evaluation(selected.evaluation)
    scoring = None if selected.watch is None else store.scoring(selected.watch)
    known = scoring if isinstance(scoring, Scoring) else None
    return State(cell, selected, measured, None if measured is None else measured.error, known)


def scored_state(cell: Cell, store: Store) -> State:
    """What a store knows of the scoring run of a cell, whatever would be selected by it."""
    found = None if cell.watch is None else store.scoring(cell.watch.key)
    return State(cell, error=found) if isinstance(found, str) else State(cell, scoring=found)


def run_study(
    study: Study,
    subjects: Mapping[str, Subject],
    store: Store,
    engine: Engine,
    *,
    among: Collection[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[State]:
    """Measure what is missing of a study, or among the cells with these keys, and return what is known of every cell.

    What fails is recorded, and the rest goes on. What another process has claimed is waited for.
    """
    if among is None:
        _remember(study, subjects, store)
    with closing(engine):
        cells = list(cells_of(study, subjects))
        asked_for = [cell for cell in cells if among is None or cell.key in among]
        run = _Run(asked_for, scored_cells(study, subjects), store, engine, progress or (lambda _: None))
        with store.alive():
            run.go()
    return [state_of(cell, store) for cell in cells]


def scored_cells(study: Study, subjects: Mapping[str, Subject]) -> list[Cell]:
    """For a study that evaluates nothing, one cell for each set, of which only the scores are of use."""
    if study.sizes:
        return []
    places: dict[str, tuple[Axis, ...]] = {"rows": ("set", "size"), "columns": ("rule", "net", "epochs")}
    single = study.replace(rules=study.rules[:1], sizes=("100%",), repeats=1, **places)
    return list(cells_of(single, subjects))


def missing_work(cells: Iterable[Cell], scored: Iterable[Cell], store: Store) -> dict[str, float]:
    """What there is to do for these cells, and for the scores of those, as far as one can tell beforehand, by networks."""
    states = [state for cell in cells if not (state := state_of(cell, store)).done and state.error is None]
    unselected = [state.cell for state in states if state.selected is None]
    jobs = {_evaluation_key(state): (state.cell.net, evaluation_work(state.cell)) for state in states}
    jobs |= {
        cell.watch.key: (cell.scored_by, watch_job(cell, cell.watch).work)
        for cell in (*unselected, *scored)
        if cell.watch is not None and not store.knows(cell.watch.key)
    }
    work: dict[str, float] = {}
    for net, amount in jobs.values():
        work[net] = work.get(net, 0.0) + amount
    return work


def _evaluation_key(state: State) -> str:
    """The key of the evaluation that a cell waits for, or its own while nobody knows what it keeps."""
    if state.selected is not None:
        return state.selected.evaluation
    cell = state.cell
    return key_of(cell.evaluation_facts(np.arange(cell.patches))) if cell.whole else cell.key


def _remember(study: Study, subjects: Mapping[str, Subject], store: Store) -> None:
    """Keep what was asked for, so that a store can tell from any folder what it is for."""
    settled = study.replace(
        sets=tuple(map(_absolute, study.sets)),
        test=None if study.test is None or study.test in SOURCES else _absolute(study.test),
        precision=computed_in(study.precision),
    )
    home = next(iter(subjects.values())).home
    spec = {"study": settled.spec, "home": None if home is None else str(home.resolve())}
    store.remember(key_of(spec), spec)


def _absolute(spec: str) -> str:
    """A path that is understood from any folder; a name stays one."""
    return str(Path(spec).resolve()) if Path(spec).exists() else spec


class _Run:
    """Cells wait for jobs; when one is over, by whoever did it, the store is asked what those that waited for it need next."""

    def __init__(
        self,
        cells: Iterable[Cell],
        scored: Iterable[Cell],
        store: Store,
        engine: Engine,
        progress: Callable[[Progress], None],
    ) -> None:
        self._cells, self._scored = list(cells), list(scored)
        self._store, self._engine, self._progress = store, engine, progress
        self._jobs: dict[str, Job] = {}  # that are not over
        self._waiting: dict[str, list[Cell]] = {}  # cells by the key of the job they wait for
        self._choosing: deque[Cell] = deque()  # cells whose scores are known and whose patches are not yet
        self._under_way: set[str] = set()  # of the jobs, what our engine has
        self._done, self._failed = 0, 0
        self._work_done, self._work = 0.0, sum(missing_work(self._cells, self._scored, store).values())
        self._evidence = lru_cache(HELD)(self._read_evidence)

    def go(self) -> None:
        for cell in self._scored:
            if cell.watch is not None and not self._store.knows(cell.watch.key):
                self._jobs[cell.watch.key] = watch_job(cell, cell.watch)
        for cell in self._cells:
            self._place(cell)
        looked = monotonic()
        while self._jobs or self._choosing:
            self._submit()
            self._tell()
            for done in self._engine.finished(0 if self._choose() else LISTEN):
                self._record(done)
            if monotonic() - looked > LOOK or not self._under_way:
                self._look_at_others()
                looked = monotonic()
        self._tell()

    def _place(self, cell: Cell) -> None:
        """Let a cell wait for what it needs next, or close it."""
        selected = self._store.selection(cell.key)
        if selected is None:
            scoring = None if cell.watch is None else self._store.scoring(cell.watch.key)
            if isinstance(scoring, str):
                self._failed += 1
            elif scoring is None and cell.watch is not None:
                self._wait(cell, watch_job(cell, cell.watch))
            else:
                self._choosing.append(cell)
        elif isinstance(selected, str):
            self._failed += 1
        elif (measured := self._store.evaluation(selected.evaluation)) is None:
            self._wait(cell, evaluate_job(cell, selected.rows))
        elif measured.error is None:
            self._done += 1
        else:
            self._failed += 1

    def _wait(self, cell: Cell, job: Job) -> None:
        self._jobs.setdefault(job.key, job)
        self._waiting.setdefault(job.key, []).append(cell)

    def _choose(self) -> bool:
        """Select the patches of cells that wait for it, if any, for a moment at a time: nobody should wait for new jobs."""
        start, some = monotonic(), bool(self._choosing)
        while self._choosing:
            cell = self._choosing.popleft()
            self._store.add_selection(cell.key, cell.facts, self._select(cell))
            self._place(cell)
            if monotonic() - start >= LISTEN:
                break
        return some

    def _select(self, cell: Cell) -> Selected | str:
        """What a cell keeps, or why that cannot be known: a run that is too short for a metric, one that diverged."""
        data = cell.subject.data
        try:
            evidence = ScoringRun(data.labels) if cell.watch is None else self._evidence(cell.watch)
            rows = cell.rows(evidence)
        except Exception as error:  # of a metric of somebody else's, for instance
            return complaint(error)
        return Selected(rows, evaluate_job(cell, rows).key, None if cell.watch is None else cell.watch.key)

    def _read_evidence(self, watch: Watch) -> ScoringRun:
        content = self._store.evidence(watch.key)
        if content is None:
            raise BadFile(f"The store {self._store.path} has lost a scoring run; start the study again.")
        return unpack(content)

    def _submit(self) -> None:
        """As many as run at a time and one more, so that no process of ours waits and the rest is left to others.

        Scoring runs come first, for cells wait for them; then what takes longest, so that nobody is alone with it in the end.
        """
        for key, job in sorted(self._jobs.items(), key=lambda item: (not isinstance(item[1], WatchJob), -item[1].work)):
            if len(self._under_way) > self._engine.slots:
                return
            if key not in self._under_way and self._store.claim(key):
                if self._store.knows(key):  # another process was quicker
                    self._store.release(key)
                    self._work -= job.work
                    self._over(key)
                    continue
                self._under_way.add(key)
                self._engine.submit(job)

    def _record(self, done: Done) -> None:
        job = done.job
        found = done.found if done.error is None else done.error
        keep = self._store.add_evidence if isinstance(job, WatchJob) else self._store.add_evaluation
        keep(job.key, job.facts, found, work=job.work, seconds=done.seconds)
        self._under_way.remove(job.key)
        self._store.release(job.key)
        self._work_done += job.work
        self._over(job.key)

    def _look_at_others(self) -> None:
        for key in [key for key in self._jobs if key not in self._under_way]:
            if self._store.knows(key):
                self._work -= self._jobs[key].work
                self._over(key)

    def _over(self, key: str) -> None:
        del self._jobs[key]
        for cell in self._waiting.pop(key, []):
            self._place(cell)

    def _tell(self) -> None:
        left = max(self._work - self._work_done, 0.0) if self._jobs or self._choosing else 0.0
        self._progress(Progress(self._done, self._failed, len(self._cells), self._work_done, left))
