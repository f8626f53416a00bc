from __future__ import annotations

import typer

from condense_once.cli import condense, curve, evaluate, experts, rank, score, study

app = typer.Typer(
    no_args_is_help=True,
    help="Estimate the time and memory of a job without running it.",
    rich_markup_mode="markdown",
    add_completion=False,
)
app.command("score")(score.plan)
app.command("rank")(rank.plan)
app.command("evaluate")(evaluate.plan)
app.command("curve")(curve.plan)
app.command("condense")(condense.plan)
app.command("study")(study.plan)
app.command("experts")(experts.plan)
