"""Errors of all patches in single epochs, sorted within each class: the paper's figure 7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics import Epochs
from condense_once.metrics.lbpe import lbpe
from condense_once.studies.figures.drawing import DRAWINGS, Drawing, FigureData, single_epoch
from condense_once.studies.figures.style import GREY, colour, dash, stacked, whole_ticks
from condense_once.studies.grid import Cell
from condense_once.studies.jobs import ScoringJob, scoring_job

if TYPE_CHECKING:  # an extra
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

SHOWN = 6  # epochs, if the study names none
ACROSS = 3
HEIGHT = 2.3  # of a panel, in inches
MAX_NAMED = 20  # classes with colours of their own; more are grey
MAX_DRAWN = 200  # classes, and points per line


@dataclass(frozen=True)
class Errors:
    """Of every patch of a set, in one epoch or averaged over several."""

    cell: Cell
    epochs: Epochs
    values: NDArray[np.float32]  # [N]


def draw_distribution(figure: Figure, results: FigureData) -> str:
    shown = list(_errors(results))
    if not shown:
        raise results.nothing_yet()
    sets: dict[str, list[Errors]] = {}
    for errors in shown:
        sets.setdefault(errors.cell.at("set"), []).append(errors)
    heights = [HEIGHT * -(-len(members) // ACROSS) for members in sets.values()]
    for part, (name, members) in zip(stacked(figure, heights), sets.items(), strict=True):
        part.suptitle(results.study.label(name), fontsize="medium", x=0.01, ha="left")
        _draw_set(part, members, results)
    counts = dict.fromkeys(len(members[0].values) for members in sets.values())
    return (
        "p: predicted probabilities of a patch during training, y: its one-hot label; epochs count from 0."
        f" n = {' and '.join(map(str, counts))} patches. {results.how_scored()}"
    )


def log_spaced(epochs: int) -> list[int]:
    """Log-spaced epochs of a run, including the first and the last.

    >>> log_spaced(100), log_spaced(3)
    ([0, 2, 5, 15, 39, 99], [0, 1, 2])
    """
    return sorted({round(number) - 1 for number in np.geomspace(1, epochs, SHOWN)})


def sorted_errors(errors: NDArray[np.float32], labels: NDArray[np.int64], label: int) -> NDArray[np.float32]:
    """The errors of one class, ascending.

    >>> sorted_errors(np.float32([0.5, 0.25, 0.125]), np.array([1, 0, 1]), 1).tolist()
    [0.125, 0.5]
    """
    return np.sort(errors[labels == label])


def _errors(results: FigureData) -> Iterator[Errors]:
    """Set by set, in the order of the study's epochs."""
    runs: dict[ScoringJob, dict[Epochs, Cell]] = {}
    for cell in results.scoring_cells:
        if (job := scoring_job(cell)) is None:
            raise BadOption(
                f"The rule {cell.rule.name!r} needs no training, so it has no errors to draw; put one that does, such as"
                f" yoco, first in {results.study.name}."
            )
        runs.setdefault(job, {}).setdefault(cell.config.lbpe_epochs, cell)
    for cells in runs.values():
        scoring_run = results.scoring_run(next(iter(cells.values())))
        if scoring_run is None or scoring_run.dynamics is None:
            continue
        for named, cell in cells.items():
            length = min(cell.config.scoring_epochs, scoring_run.dynamics.epochs)
            chosen = [Epochs.range(epoch, epoch) for epoch in log_spaced(length)]
            error, correct = scoring_run.dynamics.error[:length], scoring_run.dynamics.correct[:length]
            for epochs in chosen if results.study.epochs == ("",) else [named]:
                yield Errors(cell, epochs, lbpe(error, correct, epochs))


def _draw_set(part: SubFigure, members: list[Errors], results: FigureData) -> None:
    rows = -(-len(members) // ACROSS)
    for number, errors in enumerate(members):
        area = part.add_subplot(rows, ACROSS, number + 1)
        lines = _draw_classes(area, errors, results)
        epoch = single_epoch(errors.epochs)
        area.set_title(f"mean over epochs {errors.epochs}" if epoch is None else f"epoch {epoch}", loc="left")
        whole_ticks(area)
        area.set_ylim(0, sqrt(2))  # the largest distance of two distributions
        if number >= len(members) - ACROSS:
            area.set_xlabel("patches, easiest first")
        if number % ACROSS == 0:
            area.set_ylabel("error ‖p − y‖₂")
        if number == 0 and len(lines) <= MAX_NAMED:
            part.legend(*zip(*lines, strict=True), loc="outside right upper", title="class")


def _draw_classes(area: Axes, errors: Errors, results: FigureData) -> list[tuple[Line2D, str]]:
    """One line per class that has patches; returns them with their names."""
    data, lines = errors.cell.input.data, []
    there = np.unique(data.labels)
    for label in there[:MAX_DRAWN]:
        values = sorted_errors(errors.values, data.labels, label)
        places = np.unique(np.linspace(0, len(values) - 1, MAX_DRAWN).round().astype(np.int64))
        style: dict[str, Any] = {"color": GREY, "linewidth": 0.4}
        if len(there) <= MAX_NAMED:
            style = {"color": colour(label), "linestyle": dash(label)}
        dot = "." if len(values) == 1 else ""  # a line of one point is invisible
        lines.append(
            (area.plot(places + 1, values[places], marker=dot, **style)[0], results.class_name(data, int(label)))
        )
    return lines


DISTRIBUTION = DRAWINGS.add(Drawing("distribution", "errors per class in several epochs, sorted", draw_distribution))
