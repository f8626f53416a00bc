"""What a drawing is, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING

from condense_once.errors import BadOption
from condense_once.metrics import Epochs, ScoringRun
from condense_once.registry import Registry
from condense_once.studies.grid import Cell, Subject
from condense_once.studies.notes import notes_on, notes_on_scores
from condense_once.studies.run import State, scored_cells, scored_state
from condense_once.studies.serialize import unpack
from condense_once.studies.store import Store
from condense_once.studies.study import Study

if TYPE_CHECKING:  # an extra
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Material:
    """All that is known of a study."""

    study: Study
    subjects: Mapping[str, Subject]
    states: Sequence[State]
    store: Store
    with_paper: bool = False  # whether what the paper has is to be seen as well

    @property
    def scored(self) -> list[Cell]:
        """Cells by the first rule, of which only the scoring run is of use: one for each set, network and epochs."""
        return scored_cells(self.study.replace(sizes=()), self.subjects)

    def evidence(self, cell: Cell) -> ScoringRun | None:
        """What is known when a cell's rule chooses; None while its scoring run is missing or failed."""
        if cell.watch is None:
            return ScoringRun(cell.subject.data.labels)
        content = self.store.evidence(cell.watch.key)
        return None if content is None else unpack(content)

    def nothing_yet(self) -> BadOption:
        return BadOption(f"Nothing that {self.study.name} draws is known so far; run the study first.")

    def so_far(self) -> str:
        """How the accuracies were measured, and how many of them are still missing."""
        return " ".join(notes_on(self.study, self.states))

    def how_scored(self) -> str:
        """By which trainings the patches were scored of a study that evaluates nothing."""
        return " ".join(notes_on_scores([scored_state(cell, self.store) for cell in self.scored]))


@dataclass(frozen=True)
class Drawing:
    name: str
    summary: str
    make: Callable[[Figure, Material], str]  # fills the figure and returns its caption
    check: Callable[[Study], object] = lambda _: None  # refuses a study that it cannot draw


DRAWINGS: Registry[Drawing] = Registry("drawings")


def accuracies(states: Iterable[State]) -> list[float]:
    """In percent, of the cells that are done."""
    return [100 * state.accuracy for state in states if state.accuracy is not None]


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample deviation, which is taken as none for a single value.

    >>> mean_and_spread([40.0, 44.0, 42.0]), mean_and_spread([40.0])
    ((42.0, 2.0), (40.0, 0.0))
    """
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def single_epoch(epochs: Epochs) -> int | None:
    """Which one it is, if it is one.

    >>> single_epoch(Epochs.parse("4-4")), single_epoch(Epochs.parse("0-4"))
    (4, None)
    """
    return epochs.start if epochs.best is None and epochs.stop == epochs.start + 1 else None
