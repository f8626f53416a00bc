from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condense_once.cli.estimates import measuring
from condense_once.cli.options import CompileName, DataDir, Device, Force, Json, PrecisionName, Test
from condense_once.cli.printing import echo, note, print_json, print_rows, suggest
from condense_once.cli.status import retry, show_status
from condense_once.cli.study_progress import track_study
from condense_once.errors import BadOption
from condense_once.text import human_time, plural

if TYPE_CHECKING:
    from condense_once.studies.result import StudyResult
    from condense_once.studies.study import Study

FAILED = 1  # exit code if some runs failed

Name = Annotated[
    str,
    typer.Argument(
        help="A study (see: condense-once list studies) or a TOML file; status or retry: all studies of the store."
    ),
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", help="A condensed set to study; repeatable. By default the study's.")
]
Ceiling = Annotated[
    list[str] | None,
    typer.Option(
        "--ceiling",
        help="A set condensed for one size, to show beside the others at that size; repeatable, one for each size.",
    ),
]
ProtocolName = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help="How networks are trained and tested; by default the study's (paper). See: condense-once list protocols.",
    ),
]
Repeats = Annotated[
    int | None, typer.Option("--repeats", min=1, help="Training runs per accuracy; by default the study's (9).")
]
ScoringRuns = Annotated[
    int | None,
    typer.Option(
        "--scoring-runs", min=1, help="Scoring runs, shared by the repeats in turn; by default the study's (3)."
    ),
]
ScoringEpochs = Annotated[
    int | None,
    typer.Option(
        "--scoring-epochs",
        min=1,
        help="Epochs of the scoring run; by default the study's, or else 100, or as many as lbpe needs.",
    ),
]

Sizes = Annotated[
    list[str] | None,
    typer.Option("--size", help="Images per class (5), a percentage (30%) or all; repeatable. By default the study's."),
]
Rules = Annotated[
    list[str] | None,
    typer.Option("--rule", help="A rule to measure instead of the study's; repeatable. See: condense-once list rules."),
]
LbpeEpochs = Annotated[
    list[str] | None,
    typer.Option("--lbpe-epochs", help="Epochs for lbpe (top10/100, 89-89, all) instead of the study's; repeatable."),
]
Only = Annotated[list[str] | None, typer.Option("--only", help="Run only this rule, size or network; repeatable.")]
NetName = Annotated[
    str | None,
    typer.Option(
        "--net", help="Network for scoring and evaluation; by default the study's. See: condense-once list nets."
    ),
]
ScoredBy = Annotated[
    str | None,
    typer.Option("--scored-by", help="Network for scoring alone, such as a small proxy; by default that of --net."),
]
StoreFile = Annotated[Path, typer.Option("--store", help="SQLite file that keeps all results.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes; by default one per core.")]
STORE = Path("studies.sqlite")


def study(
    name: Name,
    sets: Sets = None,
    ceiling: Ceiling = None,
    protocol: ProtocolName = None,
    repeats: Repeats = None,
    scoring_runs: ScoringRuns = None,
    scoring_epochs: ScoringEpochs = None,
    sizes: Sizes = None,
    rules: Rules = None,
    lbpe_epochs: LbpeEpochs = None,
    only: Only = None,
    net: NetName = None,
    scored_by: ScoredBy = None,
    test: Test = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the table (.md, .tex, .csv, .parquet) or the figure (.png, .svg) to this file; repeatable.",
        ),
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="Write files without title and notes, for a paper; LaTeX without its float.")
    ] = False,
    with_paper: Annotated[
        bool, typer.Option("--with-paper", help="Show the paper's numbers beside the measured ones.")
    ] = False,
    store: StoreFile = STORE,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Run on this machine or on a Ray cluster.")] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            help="Address of the Ray cluster (host:port), or local for a new one; by default a running one, if any."
        ),
    ] = None,
    workers: Workers = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    data_dir: DataDir = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a study and print its table: only missing runs are executed, so stop at any time.

    Example: `condense-once study table1 --set cifar10-idc-ipc10 --protocol quick --repeats 3`
    """
    from condense_once.studies.result import check_outputs
    from condense_once.studies.run import run_study
    from condense_once.train.compute_config import ComputeConfig

    compute = ComputeConfig(precision, compilation, device)
    if name in ("status", "retry"):
        if any(
            (
                sets,
                ceiling,
                protocol,
                repeats,
                scoring_runs,
                scoring_epochs,
                sizes,
                rules,
                lbpe_epochs,
                only,
                net,
                scored_by,
                test,
                out,
                bare,
                with_paper,
            )
        ):
            raise BadOption(f"study {name} applies to all studies of a store; leave out the options of a single study.")
        succeeded = name == "status" or retry(store, engine, address, workers, compute)
        show_status(store, as_json=as_json)
        if not succeeded:
            raise typer.Exit(FAILED)
        return
    chosen = _chosen(
        name,
        sets,
        ceiling,
        protocol,
        repeats,
        scoring_runs,
        scoring_epochs,
        sizes,
        rules,
        lbpe_epochs,
        only,
        net,
        scored_by,
        test,
    )
    outputs = out or []
    if bare and not outputs:
        raise BadOption("--bare is about the files that are written; name one with --out.")
    check_outputs(chosen, outputs, force=force)
    if chosen.drawn and not chosen.sizes and not outputs:
        raise BadOption(f"{chosen.name} is a figure without a table; choose a file with --out {chosen.name}.png.")
    with track_study(chosen.name) as report:
        result = run_study(
            chosen,
            store=store,
            engine=engine,
            address=address,
            workers=workers,
            compute=compute,
            data_dir=data_dir,
            progress=report,
            notify=lambda sentence: note([sentence]),
        )
    note(result.failures)
    try:
        _show(result.with_paper() if with_paper else result, outputs, force=force, bare=bare, as_json=as_json)
    finally:  # also if there is nothing to draw because everything failed
        if result.failures:
            suggest("study", "retry", "--store", store)
    if result.failures:
        raise typer.Exit(FAILED)
    _suggest_figure(chosen, outputs)


def plan(
    name: Annotated[str, typer.Argument(help="A study (see: condense-once list studies) or a TOML file.")],
    sets: Sets = None,
    ceiling: Ceiling = None,
    protocol: ProtocolName = None,
    repeats: Repeats = None,
    scoring_runs: ScoringRuns = None,
    scoring_epochs: ScoringEpochs = None,
    sizes: Sizes = None,
    rules: Rules = None,
    lbpe_epochs: LbpeEpochs = None,
    only: Only = None,
    net: NetName = None,
    scored_by: ScoredBy = None,
    test: Test = None,
    store: StoreFile = STORE,
    workers: Workers = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Estimate what `study` would run and how long that takes; results in the store cost nothing.

    Example: `condense-once plan study table1 --protocol quick --repeats 3`
    """
    from condense_once.studies.plan import plan_study
    from condense_once.train.compute_config import ComputeConfig

    chosen = _chosen(
        name,
        sets,
        ceiling,
        protocol,
        repeats,
        scoring_runs,
        scoring_epochs,
        sizes,
        rules,
        lbpe_epochs,
        only,
        net,
        scored_by,
        test,
    )
    with measuring():
        planned = plan_study(
            chosen,
            store=store,
            workers=workers,
            compute=ComputeConfig(precision, compilation, device),
            data_dir=data_dir,
        )
    note(planned.notes)
    if as_json:
        print_json(asdict(planned))
        return
    todo = "nothing is left to run"
    if planned.scoring_runs or planned.slimmings or planned.evaluations:
        slimmings = f", {plural(planned.slimmings, 'slimming')}" if planned.slimmings else ""
        todo = (
            f"{plural(planned.scoring_runs, 'scoring run')}{slimmings} and {plural(planned.evaluations, 'evaluation')} to run,"
            f" about {human_time(planned.seconds)} in {plural(planned.processes, 'process')}"
        )
    counts = f"{planned.done} known from {store}, {planned.failed} failed"
    echo(f"{chosen.name}: {plural(planned.runs, 'run')}, {counts}; {todo}.")


def _chosen(
    name: str,
    sets: list[str] | None,
    ceiling: list[str] | None,
    protocol: str | None,
    repeats: int | None,
    scoring_runs: int | None,
    scoring_epochs: int | None,
    sizes: list[str] | None,
    rules: list[str] | None,
    lbpe_epochs: list[str] | None,
    only: list[str] | None,
    net: str | None,
    scored_by: str | None,
    test: str | None,
) -> Study:
    """The study of a name or file, with what the options change."""
    from condense_once.studies.study_file import find_study

    found = find_study(name)
    if sizes and not found.sizes and found.shown != "table":
        raise BadOption(f"{found.name} evaluates nothing, so it has no sizes; leave out --size.")
    return found.replace(
        sets=sets,
        ceiling=ceiling,
        protocol=protocol,
        repeats=repeats,
        scoring_runs=scoring_runs,
        scoring_epochs=scoring_epochs,
        sizes=sizes,
        fitting=False if sizes else None,
        rules=rules,
        epochs=lbpe_epochs,
        nets=(net,) if net else None,
        scored_by=scored_by or net,
        test=test,
    ).only(only or [])


def _show(result: StudyResult, outputs: Sequence[Path], *, force: bool, bare: bool, as_json: bool) -> None:
    from condense_once.studies.table_text import text_rows

    if as_json:
        print_json(result.as_json())
    elif result.table.rows:
        columns, rows = text_rows(result.table, exact=result.study.exact)
        print_rows(columns, rows, result.table.best)
        note(result.table.notes)
    for path in outputs:
        result.save(path, force=force, bare=bare)
        note([f"Wrote {path}."])


def _suggest_figure(study: Study, outputs: Sequence[Path]) -> None:
    if study.drawn and not outputs:
        suggest(*sys.argv[1:], "--out", f"{study.name}.png")
