"""How far a study is, and how long the rest of it will take."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from condense_once.evaluation.plan import plan_evaluation
from condense_once.studies.grid import Subject, cells_of
from condense_once.studies.jobs import evaluation_work
from condense_once.studies.running import State, missing_work, scored_cells, state_of
from condense_once.studies.store import Store
from condense_once.studies.study import Study


@dataclass(frozen=True)
class Standing:
    """Trainings of a study, and scoring runs if that is all it is made of."""

    states: tuple[State, ...]
    scored: tuple[State, ...]
    seconds_left: float  # of one process

    @property
    def done(self) -> int:
        return sum(state.done for state in self.states)

    @property
    def failed(self) -> int:
        return sum(state.error is not None for state in self.states)

    @property
    def missing(self) -> int:
        return len(self.states) - self.done - self.failed

    @property
    def failures(self) -> dict[str, str]:
        """What went wrong with cells, by their keys."""
        return {state.cell.key: state.error for state in (*self.states, *self.scored) if state.error is not None}


def standing(
    study: Study, subjects: Mapping[str, Subject], store: Store, among: Collection[str] | None = None
) -> Standing:
    """What a store knows of a study, or of its cells with these keys."""
    cells = [cell for cell in cells_of(study, subjects) if among is None or cell.key in among]
    scored = scored_cells(study, subjects)
    work = missing_work(cells, scored, store)
    return Standing(
        tuple(state_of(cell, store) for cell in cells),
        tuple(state_of(cell, store) for cell in scored),
        work * _pace(study, subjects, store) if work else 0.0,
    )


def _pace(study: Study, subjects: Mapping[str, Subject], store: Store) -> float:
    """Seconds for a unit of work: by what was measured so far, or else by two seconds of measurement."""
    if (pace := store.pace()) is not None:
        return pace
    cell = next(iter((*scored_cells(study, subjects), *cells_of(study, subjects))))
    part, images = cell.subject.data.take(slice(cell.patches)), len(cell.subject.test.test.labels)
    plan = plan_evaluation(part, images, protocol=cell.protocol, net=cell.net, repeats=1)
    return plan.seconds / evaluation_work(cell)
