"""Arguments and options that several verbs share: one name, one meaning."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.errors import BadOption

File = Annotated[str, typer.Argument(help="A condensed-set file, or the name of a bundled set.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Home = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of downloaded sources; by default $CONDENSE_ONCE_DATA, else the user's cache."),
]

Test = Annotated[
    str | None, typer.Option("--test", help="Source of the test images; by default the one the set was condensed from.")
]
Net = Annotated[
    str | None,
    typer.Option(
        "--net",
        help="Network; by default convnet-d3, above 64 pixels resnet10-ap. See: condense-once list nets; any depth and width"
        " works, such as convnet-d5-w64-bn.",
    ),
]
ProtocolName = Annotated[str, typer.Option("--protocol", help="See: condense-once list protocols.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Training runs, each with another initialisation.")]

PrecisionName = Annotated[
    Literal["auto", "float32", "bfloat16"], typer.Option("--precision", help="Floating-point precision of networks.")
]
CompileName = Annotated[
    Literal["auto", "on", "off"],
    typer.Option("--compile", help="Native kernels and torch.compile: where they are faster, always, or never."),
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1 …")]

Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="Repeatable; by default all metrics of one training run.")
]
Runs = Annotated[int, typer.Option("--runs", min=1, help="Training runs whose scores are averaged.")]
LbpeEpochs = Annotated[
    str | None,
    typer.Option(
        "--lbpe-epochs", metavar="top10/100|0-9|all", help="Epochs that lbpe averages over; by default the paper's."
    ),
]
ScoringEpochs = Annotated[
    int | None,
    typer.Option("--scoring-epochs", min=1, help="Epochs of the scoring run; by default as many as lbpe needs."),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="METRIC.NAME=VALUE", help="A parameter of a metric; repeatable."),
]
Training = Annotated[
    int | None,
    typer.Option(
        "--training",
        min=1,
        help="Training epochs, for metrics over the whole run; by default as many as lbpe needs.",
    ),
]


def split_names(text: str) -> tuple[str, ...]:
    """Comma-separated names; one that contains a comma is in double quotes.

    >>> split_names('cat, "great white shark, white shark",dog')
    ('cat', 'great white shark, white shark', 'dog')
    """
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except csv.Error:
        raise BadOption(
            f"{text!r} is not a comma-separated list of names; quote each name with double quotes or not at all."
        ) from None
    return tuple(name.strip() for name in names or [""])
