"""What a store knows of a study: which cells are done, failed or missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from condense_once.studies.grid import Cell, StudyInput, cells_of, key_of, scoring_cells
from condense_once.studies.jobs import scoring_job
from condense_once.studies.store import Store, StoredEvaluation, StoredScoringRun, StoredSelection, StoredSlimming
from condense_once.studies.study import Axis, Study


@dataclass(frozen=True)
class CellState:
    cell: Cell
    selection: StoredSelection | None = None
    evaluation: StoredEvaluation | None = None
    error: str | None = None  # of its evaluation, its slimming, its selection, or its scoring run
    scoring_run: StoredScoringRun | None = None
    slimming: StoredSlimming | None = None
    damaged: tuple[str, ...] = ()  # tables of the store in which its row is damaged

    @property
    def accuracy(self) -> float | None:
        if self.evaluation is None or self.evaluation.result is None:
            return None
        return float(self.evaluation.result["accuracy"])

    @property
    def slimming_key(self) -> str | None:
        """Of the job that slims its patches, once they are selected."""
        facts = None if self.selection is None else self.cell.slimming_facts(self.selection.rows)
        return None if facts is None else key_of(facts)

    @property
    def done(self) -> bool:
        return self.accuracy is not None


@dataclass(frozen=True)
class StudyState:
    """Its runs are the evaluations, or the scoring runs of a study that evaluates nothing."""

    cells: tuple[CellState, ...]
    scoring: tuple[CellState, ...]  # one per scoring run of a study that evaluates nothing

    @property
    def total(self) -> int:
        return len(self.cells or self.scoring)

    @property
    def done(self) -> int:
        if self.cells:
            return sum(state.done for state in self.cells)
        return sum(state.scoring_run is not None for state in self.scoring)

    @property
    def failures(self) -> list[CellState]:
        return [state for state in (*self.cells, *self.scoring) if state.error is not None]

    @property
    def failed(self) -> int:
        return len(self.failures)

    @property
    def missing(self) -> int:
        return self.total - self.done - self.failed

    @property
    def failed_cells(self) -> set[str]:
        """Keys of the cells that failed."""
        return {state.cell.key for state in self.cells if state.error is not None}

    @property
    def failed_keys(self) -> set[str]:
        """Keys of everything that a store must forget before the failures can run again."""
        scored = {job.key for state in self.failures if (job := scoring_job(state.cell)) is not None}
        evaluated = {state.selection.evaluation_key for state in self.failures if state.selection is not None}
        slimmed = {state.slimming_key for state in self.failures if state.slimming_key is not None}
        return scored | slimmed | evaluated | self.failed_cells


def study_state(
    study: Study, inputs: Mapping[str, StudyInput], store: Store, among: Collection[str] | None = None
) -> StudyState:
    """What a store knows of a study, or of its cells with the keys `among`."""
    cells = [cell for cell in cells_of(study, inputs) if among is None or cell.key in among]
    scored = {job.key: cell for cell in scoring_cells(study, inputs) if (job := scoring_job(cell)) is not None}
    return StudyState(
        tuple(cell_state(cell, store) for cell in cells),
        tuple(scoring_state(cell, store) for cell in scored.values()),
    )


def cell_state(cell: Cell, store: Store) -> CellState:
    selection = store.selection(cell.key)
    if selection is None:
        state = scoring_state(cell, store)
        return replace(state, damaged=(*_damaged(store, cell.key), *state.damaged))
    if isinstance(selection, str):
        return replace(scoring_state(cell, store), error=selection)
    evaluation = store.evaluation(selection.evaluation_key)
    run = None if selection.scoring_key is None else store.scoring_run(selection.scoring_key)
    slimming_key = CellState(cell, selection).slimming_key
    slimming = None if slimming_key is None else store.slimming(slimming_key)
    slimming_error = slimming if isinstance(slimming, str) else None
    return CellState(
        cell=cell,
        selection=selection,
        evaluation=evaluation,
        error=slimming_error if evaluation is None else evaluation.error,
        scoring_run=run if isinstance(run, StoredScoringRun) else None,
        slimming=slimming if isinstance(slimming, StoredSlimming) else None,
        damaged=_damaged(store, selection.evaluation_key, selection.scoring_key, slimming_key),
    )


def scoring_state(cell: Cell, store: Store) -> CellState:
    """What a store knows of the scoring run of a cell alone."""
    job = scoring_job(cell)
    run = None if job is None else store.scoring_run(job.key)
    if isinstance(run, str):
        return CellState(cell, error=run)
    return CellState(cell, scoring_run=run, damaged=_damaged(store, None if job is None else job.key))


def _damaged(store: Store, *keys: str | None) -> tuple[str, ...]:
    return tuple(store.damaged[key] for key in keys if key in store.damaged)


def grouped(states: Iterable[CellState], axes: Sequence[Axis]) -> dict[tuple[str, ...], list[CellState]]:
    """States by their position on some axes, in the order of the study."""
    groups: dict[tuple[str, ...], list[CellState]] = {}
    for state in states:
        groups.setdefault(tuple(state.cell.at(axis) for axis in axes), []).append(state)
    return groups
