"""All verbs in one place."""

from __future__ import annotations

from typing import Annotated

import typer

from condense_once._version import __version__
from condense_once.cli import (
    compare,
    condense,
    data,
    evaluate,
    export,
    import_,
    info,
    list_,
    rank,
    resize,
    score,
    select,
    show,
    study,
    verify,
)

app = typer.Typer(
    name="condense-once",
    help="One condensed dataset in, any smaller one out, without condensing again.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"condense-once {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


app.command("import")(import_.import_)
app.command("export")(export.export)
app.command("info")(info.info)
app.command("show")(show.show)
app.command("verify")(verify.verify)
app.command("list")(list_.list_)
app.command("score")(score.score)
app.command("rank")(rank.rank)
app.command("resize")(resize.resize)
app.command("select")(select.select)
app.command("compare")(compare.compare)
app.command("evaluate")(evaluate.evaluate)
app.command("condense")(condense.condense)
app.command("study")(study.study)
app.add_typer(data.app, name="data")

plans = typer.Typer(no_args_is_help=True, help="How long a job will take and how much memory, without running it.")
plans.command("score")(score.plan)
plans.command("evaluate")(evaluate.plan)
plans.command("condense")(condense.plan)
app.add_typer(plans, name="plan")
