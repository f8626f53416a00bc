from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import ProgressColumn, Task
from rich.text import Text

from condense_once.cli.evaluate import CompileName, Device, Home, PrecisionName, open_test
from condense_once.cli.printing import Force, Json, human_time, note, print_json, print_rows, suggest, track
from condense_once.errors import BadOption, CondenseOnceError

if TYPE_CHECKING:
    from condense_once.studies.engines import Engine
    from condense_once.studies.grid import Subject
    from condense_once.studies.running import Progress, State
    from condense_once.studies.store import Store
    from condense_once.studies.study import Study

STORE = Path("studies.sqlite")
PICTURES = (".png", ".svg")
FAILED = 1  # exit code of a study of which some trainings failed

Names = Annotated[
    str,
    typer.Argument(
        help="A study (see: condense-once list studies), the TOML file of one of your own, status or retry."
    ),
]


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
    store: Annotated[Path, typer.Option("--store", help="The file that keeps all results.")] = STORE,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Where it runs.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")] = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    home: Home = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure a table or figure of the paper, or of your own: only what is missing, and stop at any time.

    Example: `condense-once study table1 --set cifar10-real-ipc10 --protocol quick --repeats 3`
    """
    from condense_once.studies.store import Store
    from condense_once.train.hardware import Computing

    where = _Where(engine, address, workers, Computing(precision, compilation, device))
    if name in ("status", "retry"):
        if any((sets, protocol, repeats, dynamics, only, net, test, out)):
            raise BadOption(f"study {name} is about all studies of a store; pass it no option of a single one.")
        _look_after(Store(store), where, again=name == "retry", as_json=as_json)
        return
    chosen = _find(name).replace(
        sets=tuple(map(_absolute, sets)) if sets else None,
        protocol=protocol,
        repeats=repeats,
        dynamics=dynamics,
        nets=(net,) if net else None,
        scored_by=net,
        test=None if test is None else _absolute(test),
    )
    chosen = chosen.only(only or [])
    if chosen.shown == "needs":
        if out:
            raise BadOption(f"{chosen.name} is printed only, as text or with --json; leave out --out.")
        _print_needs(as_json)
        return
    _check_outputs(chosen, out or [], force)
    subjects = _subjects(chosen, home)
    kept = Store(store)
    _remember(chosen, home, kept)
    states = _measure(chosen, subjects, kept, where)
    failures = _failures(chosen, subjects, states, kept)
    note(failures)
    _show(chosen, subjects, states, kept, out or [], with_paper=with_paper, force=force, as_json=as_json)
    if failures:
        suggest(f"condense-once study retry --store {store}")
        raise typer.Exit(FAILED)
    if chosen.shown != "table" and not out:
        suggest(f"condense-once study {name} --out {chosen.name}.png")


def _find(name: str) -> Study:
    from condense_once.studies import STUDIES
    from condense_once.studies.study import read_study

    return read_study(Path(name)) if name.endswith(".toml") else STUDIES.get(name)


def _absolute(spec: str) -> str:
    """A path that is understood from any folder; a name stays one."""
    return str(Path(spec).resolve()) if Path(spec).exists() else spec


def _check_outputs(study: Study, out: Sequence[Path], force: bool) -> None:
    """Say no before any work is spent."""
    from condense_once.files import refuse_existing
    from condense_once.studies.figures import check_drawing
    from condense_once.studies.writing import check_suffix

    for path in out:
        refuse_existing(path, force)
        if path.suffix.lower() not in PICTURES:
            check_suffix(path)
        elif study.shown == "table":
            raise BadOption(f"{study.name} is a table; write it to a .md, .tex, .csv or .parquet file, not to {path}.")
        else:
            check_drawing(study, path)
    if study.sizes:
        return
    if study.shown == "table":
        raise BadOption(f"The study {study.name} has no sizes, so there is nothing to evaluate; name some.")
    if not out:
        raise BadOption(f"{study.name} is a picture and nothing else; say where to with --out {study.name}.png.")


def _subjects(study: Study, home: Path | None) -> dict[str, Subject]:
    from condense_once.condensed.bundled import load
    from condense_once.studies.grid import Subject

    found = {}
    for name in study.sets:
        data = load(name)
        test = open_test(data, study.test, home)
        found[name] = Subject(data, replace(test, splits={"test": test.test}), home)
    return found


def _remember(study: Study, home: Path | None, store: Store) -> None:
    from condense_once.studies.grid import key_of

    spec = {"study": asdict(study), "home": None if home is None else str(home.resolve())}
    store.remember(key_of(spec), spec)


class _Where:
    """Where jobs run."""

    def __init__(self, engine: str, address: str | None, workers: int | None, computing: Any) -> None:
        if engine == "local" and address is not None:
            raise BadOption("An address is one of a Ray cluster; pass --engine ray with it.")
        self._engine, self._address, self._workers, self._computing = engine, address, workers, computing

    def make(self, subjects: Mapping[str, Subject]) -> Engine:
        if self._engine == "local":
            from condense_once.studies.engines import LocalEngine

            return LocalEngine(list(subjects.values()), self._computing, self._workers)
        from condense_once.studies.ray_engine import RayEngine

        return RayEngine(list(subjects.values()), self._computing, self._address)


def _measure(
    study: Study, subjects: Mapping[str, Subject], store: Store, where: _Where, among: set[str] | None = None
) -> list[State]:
    from condense_once.studies.running import run_study

    engine = where.make(subjects)
    _say_before(study, subjects, store, engine.slots, among)
    column = _Cells()

    def tell(progress: Progress) -> None:
        column.told = progress
        total = progress.work_done + progress.work_left
        bar(int(1000 * progress.work_done / total) if total else 1000, 1000)

    with track(study.name, column) as bar:
        return run_study(study, subjects, store, engine, among=among, progress=tell)


def _say_before(
    study: Study, subjects: Mapping[str, Subject], store: Store, slots: int, among: set[str] | None
) -> None:
    from condense_once.studies.grid import cells_of
    from condense_once.studies.running import missing_work, scored_cells, state_of

    known = [state_of(cell, store) for cell in cells_of(study, subjects) if among is None or cell.key in among]
    scored = scored_cells(study, subjects)
    missing = sum(not state.done and state.error is None for state in known)
    failed = sum(state.error is not None for state in known)
    work = missing_work([state.cell for state in known], scored, store)
    if not work:
        return
    time = human_time(work * _pace(study, subjects, store) / slots)
    if not known:
        note([f"A scoring run of each set, about {time}."])
        return
    there = f"{len(known) - missing - failed} of them known from {store.path}"
    note([f"{len(known)} trainings, {there}, {failed} failed; {missing} to be run, about {time}."])


def _pace(study: Study, subjects: Mapping[str, Subject], store: Store) -> float:
    """Seconds for a unit of work: by what was measured so far, or else by two seconds of measurement."""
    from condense_once.evaluation.plan import plan_evaluation
    from condense_once.studies.grid import cells_of
    from condense_once.studies.jobs import evaluation_work
    from condense_once.studies.running import scored_cells

    if (pace := store.pace()) is not None:
        return pace
    cell = next(iter((*scored_cells(study, subjects), *cells_of(study, subjects))))
    part, images = cell.subject.data.take(slice(cell.patches)), len(cell.subject.test.test.labels)
    plan = plan_evaluation(part, images, protocol=cell.protocol, net=cell.net, repeats=1)
    return plan.seconds / evaluation_work(cell)


def _failures(study: Study, subjects: Mapping[str, Subject], states: Sequence[State], store: Store) -> list[str]:
    """What went wrong, each thing once."""
    from condense_once.studies.running import scored_cells, state_of

    watched = (state_of(cell, store) for cell in scored_cells(study, subjects))
    return sorted({state.error for state in (*states, *watched) if state.error is not None})


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
    from condense_once.studies.figures import draw
    from condense_once.studies.published import published, source_notes
    from condense_once.studies.table import make_table
    from condense_once.studies.writing import text_rows, write_table

    table = make_table(study, states, published(study, subjects) if with_paper else None)
    if with_paper:
        table = replace(table, notes=(*table.notes, *source_notes(study, subjects)))
    if as_json:
        print_json({"study": asdict(study), "cells": [_as_json(state) for state in states]})
    elif states:
        print_rows(*text_rows(table, exact=study.exact))
        note(table.notes)
    for path in out:
        if path.suffix.lower() in PICTURES:
            draw(study, subjects, states, store, path, force=force)
        else:
            write_table(table, path, force=force, exact=study.exact)
        note([f"Wrote {path}."])


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


def _look_after(store: Store, where: _Where, *, again: bool, as_json: bool) -> None:
    """How far the studies of a store are, one after the other; before that, what failed is tried again if that is wanted."""
    from condense_once.studies.study import Study

    specs = store.studies()
    if not specs:
        raise BadOption(f"There are no studies in {store.path}; begin with: condense-once study table1.")
    rows = []
    for spec in specs:
        said = spec["study"]
        row = {"study": said["name"], "sets": " ".join(said["sets"]), "protocol": said["protocol"]}
        try:
            study = Study.of_spec(said)
            subjects = _subjects(study, None if spec["home"] is None else Path(spec["home"]))
            if again:
                _retry(study, subjects, store, where)
            rows.append({**row, **_how_far(study, subjects, store)})
        except CondenseOnceError as error:  # a file that is gone, for instance, is no reason not to tell of the others
            note([f"{said['name']} cannot be looked at: {error}"])
            rows.append(row)
    if as_json:
        print_json(rows)
        return
    columns = ("study", "sets", "protocol", "trainings", "done", "missing", "failed", "time left")
    print_rows(columns, [[row.get(column, "–") for column in columns] for row in rows])


def _retry(study: Study, subjects: Mapping[str, Subject], store: Store, where: _Where) -> None:
    """Run what failed of a study, and nothing else of it."""
    from condense_once.studies.grid import cells_of
    from condense_once.studies.running import scored_cells, state_of

    cells = (*cells_of(study, subjects), *scored_cells(study, subjects))
    failed = {cell.key for cell in cells if state_of(cell, store).error is not None}
    if failed:
        note([f"{study.name}: {len(failed)} trainings that failed are tried again."])
        store.forget_errors()
        _measure(study, subjects, store, where, failed)


def _how_far(study: Study, subjects: Mapping[str, Subject], store: Store) -> dict[str, object]:
    from condense_once.studies.grid import cells_of
    from condense_once.studies.running import missing_work, scored_cells, state_of
    from condense_once.train.hardware import cores

    cells, scored = list(cells_of(study, subjects)), scored_cells(study, subjects)
    states = [state_of(cell, store) for cell in cells]
    done, failed = sum(state.done for state in states), sum(state.error is not None for state in states)
    work = missing_work(cells, scored, store)
    return {
        "trainings": len(states),
        "done": done,
        "missing": len(states) - done - failed,
        "failed": failed,
        "time left": human_time(work * _pace(study, subjects, store) / cores()) if work else "0 s",
    }


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
