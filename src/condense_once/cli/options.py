"""Arguments and options that several verbs share: one name, one meaning."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.errors import BadOption

File = Annotated[str, typer.Argument(help="A condensed-set file, or the name of a bundled set.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of downloaded datasets; by default $CONDENSE_ONCE_DATA, or else the user's cache folder.",
    ),
]
Size = Annotated[int | None, typer.Option("--size", min=1, help="Resize and crop the images of a folder to SIZE×SIZE.")]
Values = Annotated[Literal["unit"] | None, typer.Option("--values", help="Arrays of floats are pixels in 0…1 (unit).")]

Test = Annotated[
    str | None,
    typer.Option("--test", help="Source of the test images; by default the known source with the set's classes."),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like", metavar="NAME", help="Known source to take missing class names, mean and std of a --test path from."
    ),
]
Net = Annotated[
    str | None,
    typer.Option(
        "--net",
        help="Network to train; by default convnet-d3, or resnet10-ap above 64 pixels. See: condense-once list nets;"
        " any depth and width works, such as convnet-d5-w64-bn.",
    ),
]
ProtocolName = Annotated[
    str, typer.Option("--protocol", help="How networks are trained and tested. See: condense-once list protocols.")
]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Training runs, each from a different initialisation.")]
SEED_HELP = "Random seed; the same seed on the same machine gives the same result."
Seed = Annotated[int, typer.Option("--seed", min=0, help=SEED_HELP)]

StoredDtypeName = Annotated[
    Literal["float32", "float16", "uint8"] | None,
    typer.Option(
        "--dtype", help="Data type of the stored images: float16 halves a set of normalised values; pixels are uint8."
    ),
]
LabelCodingName = Annotated[
    str | None,
    typer.Option(
        "--label-coding",
        metavar="float16|uint8|topK",
        help="Store soft labels in fewer bits, or only the K largest entries of each.",
    ),
]
LabelUseName = Annotated[
    Literal["soft", "hard"] | None,
    typer.Option(
        "--labels", help="Which labels to train on; by default soft ones if the set has probabilities or logits."
    ),
]
PrecisionName = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option("--precision", help="Floating-point precision; auto is bfloat16 where the hardware supports it."),
]
CompileName = Annotated[
    Literal["auto", "on", "off"],
    typer.Option(
        "--compile", help="Use native kernels and torch.compile where they pay off (auto), always (on) or never (off)."
    ),
]
Device = Annotated[str, typer.Option("--device", help="Device to train on: cpu, cuda, cuda:1 …")]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help="Metric to score by; repeatable. By default all of a single run. See: condense-once list metrics.",
    ),
]
Runs = Annotated[int, typer.Option("--runs", min=1, help="Scoring runs to average over, with different seeds.")]
LbpeEpochs = Annotated[
    str | None,
    typer.Option(
        "--lbpe-epochs",
        metavar="top10/100|0-9|all|paper",
        help="Epochs that lbpe averages over: the best of the first, a range, all, or the paper's for the set's method; by"
        " default all for sets by DSA and KIP, else the paper's.",
    ),
]
UntilStable = Annotated[
    float | None,
    typer.Option(
        "--until-stable",
        help="End the scoring run once rankings ten epochs apart correlate so much (Spearman), such as 0.99; lbpe then averages"
        " over all epochs.",
    ),
]
ScoringEpochs = Annotated[
    int | None,
    typer.Option(
        "--scoring-epochs", min=1, help="Epochs of the scoring run; by default 100, or as many as lbpe needs."
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="METRIC.NAME=VALUE", help="Set a parameter of a metric; repeatable."),
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
