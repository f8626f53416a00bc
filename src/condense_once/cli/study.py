from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.progress import ProgressColumn, Task
from rich.text import Text

from condense_once.cli.evaluate import CompileName, Home, PrecisionName, open_test
from condense_once.cli.printing import Force, Json, human_time, note, print_json, print_rows, suggest, track
from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.studies.engines import Engine
    from condense_once.studies.grid import Subject
    from condense_once.studies.running import Progress, State
    from condense_once.studies.store import Store
    from condense_once.studies.study import Study
    from condense_once.train.hardware import Computing

STORE = Path("studies.sqlite")
PICTURES = (".png", ".svg")

Names = Annotated[
    str,
    typer.Argument(
        help="A study (see: condense-once list studies), the TOML file of one of your own, status or retry."
    ),
]
StorePath = Annotated[Path, typer.Option("--store", help="The file that keeps all results.")]


def study(
    name: Names,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A set to study; any number of times.")] = None,
    protocol: Annotated[str | None, typer.Option("--protocol", help="See: condense-once list protocols.")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Trainings for each number.")] = None,
    dynamics: Annotated[int | None, typer.Option(min=1, help="Scoring runs, taken in turns by the repeats.")] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only this rule, size or network; any number of times.")
    ] = None,
    net: Annotated[
        str | None, typer.Option("--net", help="The network that scores and is evaluated, instead of the study's.")
    ] = None,
    test: Annotated[str | None, typer.Option("--test", help="Source of the test images.")] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", "-o", help="A .md, .tex, .csv or .parquet table, or a .png or .svg figure to write."),
    ] = None,
    with_paper: Annotated[bool, typer.Option("--with-paper", help="The paper's numbers beside ours.")] = False,
    store: StorePath = STORE,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Where it runs.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")] = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    home: Home = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure a table or figure of the paper, or of your own: only what is missing, and stop at any time.

    Example: `condense-once study table1 --set cifar10-real-ipc10 --protocol quick --repeats 3`
    """
    from condense_once.studies.store import Store
    from condense_once.train.hardware import Computing

    computing = Computing(precision, compilation)
    if name in ("status", "retry"):
        _look_after(name, Store(store), home, computing, workers, as_json)
        return
    chosen = _find(name).replace(
        sets=tuple(sets) if sets else None,
        protocol=protocol,
        repeats=repeats,
        dynamics=dynamics,
        nets=(net,) if net else None,
        scored_by=net,
        test=test,
    )
    chosen = _narrowed(chosen, only or [])
    if chosen.shown == "needs":
        _print_needs(as_json)
        return
    _check_outputs(chosen, out or [], force)
    subjects = _subjects(chosen, home)
    kept = Store(store)
    kept.remember(chosen.name, asdict(chosen))
    states = _measure(chosen, subjects, kept, engine, address, workers, computing)
    _show(chosen, subjects, states, kept, out or [], with_paper=with_paper, force=force, as_json=as_json)


def _find(name: str) -> Study:
    from condense_once.studies import STUDIES
    from condense_once.studies.study import read_study

    return read_study(Path(name)) if name.endswith(".toml") else STUDIES.get(name)


def _narrowed(study: Study, only: Sequence[str]) -> Study:
    """A study of only some of its rules, sizes or networks."""
    kept = {axis: [word for word in getattr(study, axis) if word in only] for axis in ("rules", "sizes", "nets")}
    if unknown := [word for word in only if not any(word in words for words in kept.values())]:
        there = ", ".join((*study.rules, *study.sizes, *filter(None, study.nets)))
        raise BadOption(f"The study {study.name} has no {unknown[0]!r} to be kept to; it has {there}.")
    return study.replace(**{axis: tuple(words) or None for axis, words in kept.items()})


def _check_outputs(study: Study, out: Sequence[Path], force: bool) -> None:
    """Say no before any work is spent."""
    from condense_once.files import refuse_existing
    from condense_once.studies.writing import check_suffix

    for path in out:
        refuse_existing(path, force)
        if path.suffix.lower() not in PICTURES:
            check_suffix(path)
        elif study.shown == "table":
            raise BadOption(f"{study.name} is a table; write it to a .md, .tex, .csv or .parquet file, not to {path}.")
    if not study.sizes and not out:
        raise BadOption(f"{study.name} is a picture and nothing else; say where to with --out {study.name}.png.")


def _subjects(study: Study, home: Path | None) -> dict[str, Subject]:
    from condense_once.condensed.bundled import load
    from condense_once.studies.grid import Subject

    found = {}
    for name in study.sets:
        data = load(name)
        test = open_test(data, study.test, home)
        found[name] = Subject(data, replace(test, splits={"test": test.test}))
    return found


def _measure(
    study: Study,
    subjects: Mapping[str, Subject],
    store: Store,
    engine: str,
    address: str | None,
    workers: int | None,
    computing: Computing,
) -> list[State]:
    from condense_once.studies.running import run_study

    where = _engine(engine, address, workers, subjects, computing)
    _say_before(study, subjects, store, where.slots)
    column = _Cells()

    def tell(progress: Progress) -> None:
        column.told = progress
        total = progress.work_done + progress.work_left
        bar(int(1000 * progress.work_done / total) if total else 1000, 1000)

    with track(study.name, column) as bar:
        return run_study(study, subjects, store, where, progress=tell)


def _engine(
    name: str, address: str | None, workers: int | None, subjects: Mapping[str, Subject], computing: Computing
) -> Engine:
    from condense_once.studies.engines import LocalEngine

    by_key = {subject.set_key: subject for subject in subjects.values()}
    if name == "local":
        if address is not None:
            raise BadOption("An address is one of a Ray cluster; pass --engine ray with it.")
        return LocalEngine(by_key, computing, workers)
    from condense_once.studies.ray_engine import RayEngine

    return RayEngine(by_key, computing, address)


def _say_before(study: Study, subjects: Mapping[str, Subject], store: Store, slots: int) -> None:
    from condense_once.studies.grid import cells_of
    from condense_once.studies.running import state_of

    known = [state_of(cell, store) for cell in cells_of(study, subjects)]
    missing = [state.cell for state in known if not state.done and state.error is None]
    if not missing:
        return
    failed = sum(state.error is not None for state in known)
    note(
        [
            f"{len(known)} trainings, {len(known) - len(missing) - failed} of them known from {store.path}, {failed} failed;"
            f" {len(missing)} to be run, about {human_time(_time_left(known, store, slots))}."
        ]
    )


def _time_left(states: Sequence[State], store: Store, slots: int) -> float:
    """By what was measured so far, or else by two seconds of measurement."""
    from condense_once.evaluation.plan import plan_evaluation
    from condense_once.studies.jobs import evaluation_work

    missing = [state.cell for state in states if not state.done and state.error is None]
    if not missing:
        return 0.0
    pace, cell = store.pace(), missing[0]
    if pace is None:
        part = cell.subject.data.take(slice(cell.patches))
        images = len(cell.subject.test.test.labels)
        plan = plan_evaluation(part, images, protocol=cell.protocol, net=cell.net, repeats=1)
        pace = plan.seconds / evaluation_work(cell)
    return pace * sum(map(evaluation_work, missing)) / slots


def _show(
    study: Study,
    subjects: Mapping[str, Subject],
    states: Sequence[State],
    store: Store,
    out: Sequence[Path],
    *,
    with_paper: bool,
    force: bool,
    as_json: bool,
) -> None:
    from condense_once.studies.published import published
    from condense_once.studies.running import scored_cells, state_of
    from condense_once.studies.table import make_table
    from condense_once.studies.writing import text_rows, write_table

    exact = study.name == "table7"
    table = make_table(study, states, published(study, subjects) if with_paper else None)
    for path in out:
        if path.suffix.lower() in PICTURES:
            from condense_once.studies.figures import draw

            draw(study, subjects, states, store, path, force=force)
        else:
            write_table(table, path, force=force, exact=exact)
        note([f"Wrote {path}."])
    if as_json:
        print_json({"study": asdict(study), "cells": [_as_json(state) for state in states]})
    elif states:
        print_rows(*text_rows(table, exact=exact))
        note(table.notes)
    watched = (state_of(cell, store) for cell in scored_cells(study, subjects))
    if failures := sorted({state.error for state in (*states, *watched) if state.error is not None}):
        note(failures)
        suggest(f"condense-once study retry --store {store.path}")
    elif study.shown not in ("table", "needs") and not out:
        suggest(f"condense-once study {study.name} --out {study.name}.png")


def _as_json(state: State) -> dict[str, object]:
    measured = state.measured
    return {
        "key": state.cell.key,
        **dict(state.cell.place),
        "repeat": state.cell.repeat,
        "dynamics": state.cell.settings.seed,
        "facts": state.cell.facts,
        "kept": None if state.selected is None else state.selected.rows.tolist(),
        "error": state.error,
        "seconds": None if measured is None else measured.seconds,
        "made": None if measured is None else measured.made,
        "result": None if measured is None else measured.result,
    }


def _look_after(
    word: str, store: Store, home: Path | None, computing: Computing, workers: int | None, as_json: bool
) -> None:
    """How far the studies of a store are; or try again what failed."""
    from condense_once.studies.grid import cells_of
    from condense_once.studies.running import state_of
    from condense_once.studies.study import Study
    from condense_once.train.hardware import cores

    studies = [Study.of_spec(spec) for spec in store.studies().values()]
    if not studies:
        raise BadOption(f"There are no studies in {store.path}; begin with: condense-once study table1.")
    if word == "retry":
        note([f"{store.forget_errors()} failures forgotten."])
        for study in studies:
            _measure(study, _subjects(study, home), store, "local", None, workers, computing)
    rows = []
    for study in studies:
        states = [state_of(cell, store) for cell in cells_of(study, _subjects(study, home))]
        done, failed = sum(state.done for state in states), sum(state.error is not None for state in states)
        left = _time_left(states, store, workers or cores())
        rows.append((study.name, len(states), done, len(states) - done - failed, failed, left))
    if as_json:
        columns = ("study", "trainings", "done", "missing", "failed", "seconds_left")
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        named = ("study", "trainings", "done", "missing", "failed", "time left")
        print_rows(named, [(*row[:-1], human_time(row[-1])) for row in rows])


def _print_needs(as_json: bool) -> None:
    from condense_once.studies.needs import needs_table

    columns, rows = needs_table()
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows(columns, rows)


class _Cells(ProgressColumn):
    """How many cells of a study are known."""

    told: Progress | None = None

    def render(self, task: Task) -> Text:
        if self.told is None:
            return Text("")
        failed = f", {self.told.failed} failed" if self.told.failed else ""
        return Text(f"{self.told.done}/{self.told.cells}{failed}")
