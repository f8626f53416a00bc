from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condense_once.cli.measuring import Where, measure
from condense_once.cli.options import CompileName, Device, Force, Home, Json, PrecisionName, Training
from condense_once.cli.printing import note, print_json, print_rows, suggest
from condense_once.cli.status import look_at_all
from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.studies.grid import Subject
    from condense_once.studies.run import State
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
Sets = Annotated[
    list[str] | None, typer.Option("--set", help="A set to study, any number of times; by default the study's.")
]
ProtocolName = Annotated[
    str | None,
    typer.Option("--protocol", help="See: condense-once list protocols; by default the study's, mostly paper."),
]
Repeats = Annotated[
    int | None, typer.Option("--repeats", min=1, help="Trainings for each number; by default the study's, mostly 9.")
]
Dynamics = Annotated[
    int | None,
    typer.Option(
        "--dynamics", min=1, help="Scoring runs, taken in turns by the repeats; by default the study's, mostly 3."
    ),
]


def study(
    name: Names,
    sets: Sets = None,
    protocol: ProtocolName = None,
    repeats: Repeats = None,
    dynamics: Dynamics = None,
    training: Training = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="A size instead of the study's: 5, 30%, or all; any number of times."),
    ] = None,
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

    Example: `condense-once study table1 --set cifar10-idc-ipc10 --protocol quick --repeats 3`
    """
    from condense_once.studies.grid import computed_in
    from condense_once.studies.inputs import open_subjects
    from condense_once.studies.store import Store
    from condense_once.train.hardware import ComputeConfig

    where = Where(engine, address, workers, ComputeConfig(compilation=compilation, device=device))
    if name in ("status", "retry"):
        if any((sets, protocol, repeats, dynamics, training, sizes, only, net, test, out, with_paper)):
            raise BadOption(f"study {name} is about all studies of a store; pass it no option of a single one.")
        if not look_at_all(store, where if name == "retry" else None, as_json=as_json):
            raise typer.Exit(FAILED)
        return
    chosen = _find(name)
    if sizes and not chosen.sizes and chosen.shown != "table":
        raise BadOption(f"{chosen.name} evaluates nothing, so no size of it can be chosen; leave out --size.")
    chosen = chosen.replace(
        sets=sets,
        protocol=protocol,
        repeats=repeats,
        dynamics=dynamics,
        training=training,
        sizes=sizes,
        fitting=False if sizes else None,
        nets=(net,) if net else None,
        scored_by=net,
        test=test,
        precision=None if precision == "auto" else precision,
    )
    chosen = chosen.only(only or [])
    outputs = out or []
    _check_outputs(chosen, outputs, force)
    if chosen.shown == "needs":
        _show_needs(chosen, outputs, force=force, as_json=as_json)
        return
    where.check()
    chosen = chosen.replace(precision=computed_in(chosen.precision, device))
    subjects, notes = open_subjects(chosen, home)
    kept = Store(store)
    note(notes)
    states = measure(chosen, subjects, kept, where)
    failed = _complain(chosen, subjects, kept)
    try:
        _show(chosen, subjects, states, kept, outputs, with_paper=with_paper, force=force, as_json=as_json)
    finally:  # also if all failed, so that there is nothing to draw
        if failed:
            suggest("study", "retry", "--store", store)
    if failed:
        raise typer.Exit(FAILED)
    if chosen.drawn and not outputs:
        suggest(*sys.argv[1:], "--out", f"{chosen.name}.png")


def _complain(study: Study, subjects: Mapping[str, Subject], store: Store) -> bool:
    """Say what failed, if anything."""
    from condense_once.studies.progress import standing

    found = standing(study, subjects, store)
    note(found.complaints())
    return bool(found.failed)


def _find(name: str) -> Study:
    from condense_once.studies import STUDIES
    from condense_once.studies.study_file import read_study

    return read_study(Path(name)) if name.endswith(".toml") else STUDIES.get(name)


def _check_outputs(study: Study, out: Sequence[Path], force: bool) -> None:
    """Say no before any work is spent."""
    from condense_once.files import refuse_existing
    from condense_once.studies.figures import check_drawing
    from condense_once.studies.table_writers import check_suffix

    if twice := [path for number, path in enumerate(out) if path.resolve() in {it.resolve() for it in out[:number]}]:
        raise BadOption(f"{twice[0]} is to be written twice; name it once.")
    for path in out:
        refuse_existing(path, force)
        picture = path.suffix.lower() in PICTURES
        if picture and not study.drawn:
            raise BadOption(f"{study.name} is a table; write it to a .md, .tex, .csv or .parquet file, not to {path}.")
        if picture:
            check_drawing(study, path)
        elif study.drawn and not study.sizes:
            raise BadOption(
                f"{study.name} is a picture and nothing else; write it to a .png or .svg file, not to {path}."
            )
        else:
            check_suffix(path, words=study.shown == "needs")
    if study.sizes or study.shown == "needs":
        return
    if study.shown == "table":
        raise BadOption(f"The study {study.name} has no sizes, so there is nothing to evaluate; name some.")
    if not out:
        raise BadOption(f"{study.name} is a picture and nothing else; say where to with --out {study.name}.png.")


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
    from condense_once.studies.table_writers import text_rows, write_table

    table = make_table(study, states, published(study, subjects) if with_paper else None)
    if with_paper:
        table = replace(table, notes=(*table.notes, *source_notes(study, subjects, table)))
    if as_json:
        print_json({"study": asdict(study), "cells": [_as_json(state) for state in states]})
    elif states:
        print_rows(*text_rows(table, exact=study.exact), strong=table.best)
        note(table.notes)
    for path in out:
        if path.suffix.lower() in PICTURES:
            draw(study, subjects, states, store, path, with_paper=with_paper, force=force)
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


def _show_needs(study: Study, out: Sequence[Path], *, force: bool, as_json: bool) -> None:
    from condense_once.studies.needs import needs_table
    from condense_once.studies.table_writers import write_words

    columns, rows = needs_table()
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows(columns, rows)
    for path in out:
        write_words(study.summary, columns, rows, path, force=force)
        note([f"Wrote {path}."])
