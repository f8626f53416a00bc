"""A drawing, and the data it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING

from condense_once.condensed.class_labels import drawable, shortened, system_fonts
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics import Epochs, ScoringRun
from condense_once.registry import Registry
from condense_once.studies.grid import Cell, StudyInput, scoring_cells
from condense_once.studies.jobs import scoring_job
from condense_once.studies.scoring_run_io import unpack
from condense_once.studies.state import CellState, scoring_state
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.studies.table_notes import notes_on, notes_on_scores

if TYPE_CHECKING:  # an extra
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FigureData:
    """A study and what its store knows."""

    study: Study
    inputs: Mapping[str, StudyInput]
    states: Sequence[CellState]
    store: Store
    with_paper: bool = False  # whether to show the paper's values, too
    text_stays_text: bool = False  # in the file, as in an SVG, so that no font is needed here

    @property
    def scoring_cells(self) -> list[Cell]:
        """One cell per set, network and epochs, by the first rule, for its scoring run."""
        return scoring_cells(self.study.replace(sizes=()), self.inputs)

    def scoring_run(self, cell: Cell) -> ScoringRun | None:
        """What the scoring run of a cell recorded; None while it is missing or failed."""
        job = scoring_job(cell)
        if job is None:
            return ScoringRun(cell.input.data.labels)
        content = self.store.scoring_bytes(job.key)
        return None if content is None else unpack(content)

    def class_name(self, data: CondensedSet, label: int) -> str:
        """The name of a class, short enough to fit beside a picture, in characters that can be drawn."""
        name = shortened(data.classes[label])
        return name if self.text_stays_text else drawable(name, label, system_fonts()).text

    def nothing_yet(self) -> BadOption:
        return BadOption(f"There are no results for the figure of {self.study.name} yet; run the study first.")

    def how_measured(self) -> str:
        """How the accuracies were measured, and how many are missing."""
        return " ".join(notes_on(self.study, self.states))

    def how_scored(self) -> str:
        """The scoring runs of a study that evaluates nothing."""
        return " ".join(notes_on_scores([scoring_state(cell, self.store) for cell in self.scoring_cells]))


@dataclass(frozen=True)
class Drawing:
    name: str
    summary: str
    draw: Callable[[Figure, FigureData], str]  # fills the figure and returns its caption
    check: Callable[[Study], object] = lambda _: None  # raises for a study that it cannot show


DRAWINGS: Registry[Drawing] = Registry("drawings")


def accuracies(states: Iterable[CellState]) -> list[float]:
    """In percent, of cells that are done."""
    return [100 * state.accuracy for state in states if state.accuracy is not None]


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (n − 1), which is 0 for a single value.

    >>> mean_and_std([40.0, 44.0, 42.0]), mean_and_std([40.0])
    ((42.0, 2.0), (40.0, 0.0))
    """
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def single_epoch(epochs: Epochs) -> int | None:
    """The epoch, if there is only one.

    >>> single_epoch(Epochs.parse("4-4")), single_epoch(Epochs.parse("0-4"))
    (4, None)
    """
    return epochs.start if epochs.best is None and epochs.stop == epochs.start + 1 else None
