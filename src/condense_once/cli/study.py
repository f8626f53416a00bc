from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condense_once.cli.measuring import Where, measure, subjects_of
from condense_once.cli.options import CompileName, Device, Force, Home, Json, PrecisionName
from condense_once.cli.printing import note, print_json, print_rows, suggest
from condense_once.cli.status import retry, show_status
from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.studies.grid import Subject
    from condense_once.studies.running import State
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
    from condense_once.studies.standing import standing
    from condense_once.studies.store import Store
    from condense_once.train.hardware import Computing

    where = Where(engine, address, workers, Computing(precision, compilation, device))
    if name in ("status", "retry"):
        if any((sets, protocol, repeats, dynamics, only, net, test, out)):
            raise BadOption(f"study {name} is about all studies of a store; pass it no option of a single one.")
        kept = Store(store)
        if name == "retry":
            retry(kept, where)
        show_status(kept, as_json=as_json)
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
    subjects = subjects_of(chosen, home)
    kept = Store(store)
    _remember(chosen, home, kept)
    states = measure(chosen, subjects, kept, where)
    failures = sorted(set(standing(chosen, subjects, kept).failures.values()))
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


def _remember(study: Study, home: Path | None, store: Store) -> None:
    from condense_once.studies.grid import key_of

    spec = {"study": asdict(study), "home": None if home is None else str(home.resolve())}
    store.remember(key_of(spec), spec)


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


def _print_needs(as_json: bool) -> None:
    from condense_once.studies.needs import needs_table

    columns, rows = needs_table()
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows(columns, rows)
