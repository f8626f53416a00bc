"""Arguments and options that several verbs share, so that one name means one thing everywhere."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.errors import BadOption

File = Annotated[str, typer.Argument(help="A condensed-set file, or the name of a bundled set.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Home = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of downloaded sources; by default $CONDENSE_ONCE_DATA, else the user's cache."),
]

Test = Annotated[
    str | None, typer.Option("--test", help="Source of the test images; by default the one the set is from.")
]
Net = Annotated[
    str | None,
    typer.Option(
        "--net",
        help="By default convnet-d3, above 64 pixels resnet10-ap. See: condense-once list nets; any depth and width, as in"
        " convnet-d5-w64-bn, works too.",
    ),
]
ProtocolName = Annotated[str, typer.Option("--protocol", help="See: condense-once list protocols.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Trainings, each from other weights.")]

PrecisionName = Annotated[
    Literal["auto", "float32", "bfloat16"], typer.Option("--precision", help="What networks compute in.")
]
CompileName = Annotated[
    Literal["auto", "on", "off"],
    typer.Option("--compile", help="Layers of ours and PyTorch's compiler: where they pay, all, or none."),
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1 …")]

Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="Can be repeated; by default all that a single run serves.")
]
Runs = Annotated[int, typer.Option("--runs", min=1, help="Training runs whose scores are averaged.")]
LbpeEpochs = Annotated[
    str | None,
    typer.Option(
        "--lbpe-epochs", metavar="top10/100|0-9|all", help="Epochs that lbpe averages over; by default the authors'."
    ),
]
ScoringEpochs = Annotated[
    int | None,
    typer.Option("--scoring-epochs", min=1, help="Epochs of the scoring run; by default as many as lbpe needs."),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="METRIC.NAME=VALUE", help="A parameter of a metric; can be repeated."),
]
Training = Annotated[
    int | None,
    typer.Option(
        "--training",
        min=1,
        help="Epochs of training, for metrics that look at all of it; by default as many as lbpe needs.",
    ),
]


def split_names(text: str) -> tuple[str, ...]:
    """Names separated by commas; one that has a comma of its own is in double quotes.

    >>> split_names('cat, "great white shark, white shark",dog')
    ('cat', 'great white shark, white shark', 'dog')
    """
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except csv.Error:
        raise BadOption(
            f"{text!r} is no list of names separated by commas, each of them in double quotes or none."
        ) from None
    return tuple(name.strip() for name in names or [""])
