"""Options of `resize` and `select`: how much to keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.estimates import measuring
from condense_once.cli.options import split_names
from condense_once.cli.printing import note
from condense_once.errors import BadOption
from condense_once.text import plural, time_range

if TYPE_CHECKING:
    from condense_once.condensed.budget import Budget
    from condense_once.condensed.set import CondensedSet

Ipc = Annotated[int | None, typer.Option("--ipc", min=1, help="Images per class to keep.")]
Total = Annotated[int | None, typer.Option("--total", min=1, help="Patches to keep in total.")]
FractionOfPatches = Annotated[
    str | None, typer.Option("--fraction", help="Fraction of the patches to keep, such as 0.25 or 25%.")
]
Bytes = Annotated[str | None, typer.Option("--bytes", help="Maximum file size, such as 64KiB.")]
Accuracy = Annotated[
    str | None,
    typer.Option(
        "--accuracy", help="The smallest file that is expected to reach this accuracy, such as 50%. Needs a curve."
    ),
]
Lossless = Annotated[
    bool,
    typer.Option(
        "--lossless", help="Keep the bits of every patch: --bytes then keeps fewer patches instead of coarser ones."
    ),
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="Maximum time of one training run on this machine, as measured now.")
]
Classes = Annotated[
    str | None, typer.Option("--classes", metavar="A,B,…", help='Keep only these classes; quote "names, with commas".')
]
PerClass = Annotated[
    str | None,
    typer.Option(
        "--per-class",
        metavar="A=3,B=5,…",
        help='Patches to keep of each class named; quote "a name, with commas=3". Or JSON, or a JSON file.',
    ),
]
Renumber = Annotated[bool, typer.Option("--renumber", help="Renumber the labels of the kept classes from 0.")]
TimedProtocol = Annotated[
    str | None,
    typer.Option(
        "--protocol", help="Protocol that --seconds applies to; by default quick. See: condense-once list protocols."
    ),
]
TimedNet = Annotated[
    str | None, typer.Option("--net", help="Network that --seconds applies to. See: condense-once list nets.")
]


def budget_of(
    ipc: int | None,
    total: int | None,
    fraction: str | None,
    max_bytes: str | None,
    classes: str | None,
    per_class: str | None,
    renumber: bool,
    seconds: float | None,
    accuracy: str | None = None,
) -> Budget:
    from condense_once.condensed.budget import Budget

    budget = Budget(
        ipc=ipc,
        total=total,
        fraction=fraction,
        bytes=max_bytes,
        classes=None if classes is None else split_names(classes),
        per_class=None if per_class is None else read_per_class(per_class),
        renumber=renumber,
    )
    if seconds is not None:
        from condense_once.selection.time_budget import check_open_size

        check_open_size(budget)
    elif accuracy is not None:
        if budget != Budget() or seconds is not None:
            raise BadOption("--accuracy is a budget of its own; leave out the others.")
    elif classes is None and not budget.needs_ranking:
        raise BadOption(
            "There is no budget; pass --ipc, --total, --fraction, --bytes, --accuracy, --seconds, --classes or --per-class."
        )
    return budget


def read_per_class(text: str) -> dict[str, int]:
    """Patches of each class, from A=3,B=5, from JSON or from a JSON file.

    >>> read_per_class('cat=3,"great white shark, white shark=5"')
    {'cat': 3, 'great white shark, white shark': 5}
    """
    from condense_once.condensed.budget import parse_counts, read_counts

    if text.lstrip().startswith("{"):
        return parse_counts(text, "--per-class")
    if Path(text).is_file() or Path(text).suffix == ".json":
        return read_counts(Path(text))
    counts: dict[str, int] = {}
    for item in split_names(text):
        name, _, count = item.rpartition("=")
        if not name or not count.strip().isdecimal():
            raise BadOption(
                f"--per-class takes NAME=PATCHES between commas, such as cat=3,dog=5, or a JSON file, not {item!r}."
            )
        if name.strip() in counts:
            raise BadOption(f"--per-class names {name.strip()!r} twice; name it once.")
        counts[name.strip()] = int(count)
    return counts


def timed_budget(data: CondensedSet, seconds: float, budget: Budget, protocol: str | None, net: str | None) -> Budget:
    """The budget with as many patches as can be trained on within `seconds`; prints how many."""
    from condense_once.selection.time_budget import within_seconds

    with measuring():
        timed = within_seconds(data, seconds, budget, protocol=protocol or "quick", net=net)
    patches = f"{timed.patches} of {plural(timed.pool, 'patch')}"
    note([f"Training on {patches} is estimated to take {time_range(*timed.seconds)} here, within the {seconds:g} s."])
    return timed.budget
