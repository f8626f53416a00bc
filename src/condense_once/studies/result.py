"""What a study found, to print and to save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from condense_once.errors import BadOption
from condense_once.files import refuse_existing
from condense_once.studies.grid import StudyInput
from condense_once.studies.make_table import make_table
from condense_once.studies.published_numbers import published, source_notes
from condense_once.studies.state import CellState
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.studies.table import Table
from condense_once.studies.table_records import records
from condense_once.studies.table_text import to_text
from condense_once.studies.table_writers import check_suffix, write_table

FIGURES = (".png", ".svg")


@dataclass(frozen=True)
class StudyResult:
    """`print` shows the table; `save` writes the table or the figure."""

    study: Study
    table: Table
    states: tuple[CellState, ...] = ()
    failures: tuple[str, ...] = ()  # one sentence per reason
    inputs: Mapping[str, StudyInput] = field(default_factory=dict, repr=False)
    store: Path | None = None
    shows_paper: bool = False

    def __str__(self) -> str:
        return to_text(self.table, exact=self.study.exact)

    def save(self, path: str | PathLike[str], *, force: bool = False, bare: bool = False) -> None:
        """Write a table (.md, .tex, .csv, .parquet) or a figure (.png, .svg); `bare` leaves out title and notes."""
        out = Path(path)
        check_output(self.study, out, force=force)
        if out.suffix.lower() not in FIGURES:
            write_table(self.table, out, force=force, exact=self.study.exact, bare=bare)
            return
        from condense_once.studies.figures import FigureData, save_figure

        if self.store is None:
            raise BadOption(f"{self.study.name} has no figure; save its table instead.")
        with closing(Store(self.store, readonly=True)) as store:
            data = FigureData(self.study, self.inputs, self.states, store, self.shows_paper)
            save_figure(data, out, force=force, bare=bare)

    def with_paper(self) -> StudyResult:
        """The same with the paper's numbers beside ours."""
        if not self.inputs:
            return self
        table = make_table(self.study, self.states, published(self.study, self.inputs))
        table = replace(table, notes=(*table.notes, *source_notes(self.study, self.inputs, table)))
        return replace(self, table=table, shows_paper=True)

    def as_json(self) -> Any:
        """Every cell with its result, or the rows of a table that has none."""
        if self.study.shown == "requirements":
            return list(records(self.table))
        return {"study": asdict(self.study), "cells": [_cell_as_json(state) for state in self.states]}


def check_outputs(study: Study, paths: Sequence[Path], *, force: bool = False) -> None:
    """Refuse outputs that could not be written, before anything runs."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise BadOption(f"{path} would be written twice; name it once.")
        seen.add(path.resolve())
        check_output(study, path, force=force)


def check_output(study: Study, path: Path, *, force: bool = False) -> None:
    refuse_existing(path, force)
    is_figure = path.suffix.lower() in FIGURES
    if is_figure and not study.drawn:
        raise BadOption(f"{study.name} is a table; write it to a .md, .tex, .csv or .parquet file, not to {path}.")
    if study.drawn and not study.sizes and not is_figure:
        raise BadOption(f"{study.name} is a figure without a table; write it to a .png or .svg file, not to {path}.")
    if is_figure:
        from condense_once.studies.figures import check_figure

        check_figure(study, path)
    else:
        check_suffix(path)


def _cell_as_json(state: CellState) -> dict[str, Any]:
    evaluation = state.evaluation
    return {
        "key": state.cell.key,
        **dict(state.cell.place),
        "repeat": state.cell.repeat,
        "scoring_seed": state.cell.config.seed,
        "facts": state.cell.facts,
        "kept": None if state.selection is None else state.selection.rows.tolist(),
        "error": state.error,
        "seconds": None if evaluation is None else evaluation.seconds,
        "made": None if evaluation is None else evaluation.made,
        "result": None if evaluation is None else evaluation.result,
    }
