"""How far a study is, what failed of it, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from condense_once.evaluation.cost import estimate_evaluation
from condense_once.studies.grid import Subject, cells_of
from condense_once.studies.jobs import evaluation_work
from condense_once.studies.run import State, grouped, missing_work, scored_cells, scored_state, state_of
from condense_once.studies.store import Store
from condense_once.studies.study import Axis, Study

NAMED = 5  # places of a failure that are named
_FURTHER: tuple[Axis, ...] = ("set", "net", "epochs")  # which name a place only where a study has several of them


@dataclass(frozen=True)
class Standing:
    """Trainings of a study, and scoring runs if that is all it is made of."""

    states: tuple[State, ...]
    scored: tuple[State, ...]  # one for each scoring run
    seconds_left: float  # of one process

    @property
    def total(self) -> int:
        return len(self.states or self.scored)

    @property
    def done(self) -> int:
        if self.states:
            return sum(state.done for state in self.states)
        return sum(state.scoring is not None for state in self.scored)

    @property
    def failed(self) -> int:
        return len(self.failures)

    @property
    def missing(self) -> int:
        return self.total - self.done - self.failed

    @property
    def failures(self) -> list[State]:
        return [state for state in (*self.states, *self.scored) if state.error is not None]

    @property
    def failed_cells(self) -> set[str]:
        """Keys of trainings that failed."""
        return {state.cell.key for state in self.states if state.error is not None}

    @property
    def failed_keys(self) -> set[str]:
        """Keys of all that a store would have to forget for what failed to be tried again."""
        scored = {state.cell.watch.key for state in self.failures if state.cell.watch is not None}
        evaluated = {state.selected.evaluation for state in self.failures if state.selected is not None}
        return scored | evaluated | self.failed_cells

    def complaints(self) -> Iterator[str]:
        """What failed and why, a sentence for each reason."""
        axes: list[Axis] = ["rule", "size"] if self.states else ["set"]
        axes += [axis for axis in _FURTHER if len(grouped(self.states, (axis,))) > 1]
        reasons: dict[str, list[State]] = {}
        for state in self.failures:
            reasons.setdefault(str(state.error), []).append(state)
        for reason, states in reasons.items():
            places = [_place(axes, place, group) for place, group in grouped(states, axes).items()]
            more = [f"and {len(places) - NAMED} more"] if len(places) > NAMED else []
            what = "training" if self.states else "scoring run"
            count = f"1 {what}" if len(states) == 1 else f"{len(states)} {what}s"
            yield f"{count} failed ({'; '.join([*places[:NAMED], *more])}): {reason}"


def standing(
    study: Study, subjects: Mapping[str, Subject], store: Store, among: Collection[str] | None = None
) -> Standing:
    """What a store knows of a study, or of its cells with these keys."""
    cells = [cell for cell in cells_of(study, subjects) if among is None or cell.key in among]
    scored = {cell.watch.key: cell for cell in scored_cells(study, subjects) if cell.watch is not None}
    work = missing_work(cells, scored.values(), store)
    return Standing(
        tuple(state_of(cell, store) for cell in cells),
        tuple(scored_state(cell, store) for cell in scored.values()),
        sum(amount * _pace(net, study, subjects, store) for net, amount in work.items()),
    )


def _place(axes: Sequence[Axis], place: Sequence[str], states: Sequence[State]) -> str:
    """Where in the grid cells failed, such as `el2n at 1, repeats 0–2`."""
    at = dict(zip(axes, place, strict=True))
    if "rule" not in at:
        return at["set"]
    named = f"{at.pop('rule')} at {at.pop('size')}"
    repeats = _ranges(sorted(state.cell.repeat for state in states))
    return ", ".join([named, *at.values(), f"repeat{'s' if len(states) > 1 else ''} {repeats}"])


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers that ascend, in short.

    >>> _ranges([0, 1, 2, 5])
    '0–2, 5'
    """
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _pace(net: str, study: Study, subjects: Mapping[str, Subject], store: Store) -> float:
    """Seconds for a unit of work of a network: by what was measured so far, or else by two seconds of measurement."""
    if (pace := store.pace(net)) is not None:
        return pace
    cell = next(iter((*scored_cells(study, subjects), *cells_of(study, subjects))))
    part, images = cell.subject.data.take(slice(cell.patches)), len(cell.subject.test.test.labels)
    plan = estimate_evaluation(part, images, protocol=cell.protocol, net=net, repeats=1)
    return plan.seconds / evaluation_work(replace(cell, net=net))
