from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.budget_options import (
    Bytes,
    Classes,
    FractionOfPatches,
    Ipc,
    PerClass,
    Renumber,
    Seconds,
    TimedNet,
    TimedProtocol,
    Total,
    budget_of,
    timed_budget,
)
from condense_once.cli.options import Force
from condense_once.cli.printing import classes_there, note, suggest
from condense_once.errors import BadOption
from condense_once.text import human_bytes


def resize(
    file: Annotated[str, typer.Argument(help="A ranked file, or the name of a bundled set.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The smaller file to write.")],
    ipc: Ipc = None,
    total: Total = None,
    fraction: FractionOfPatches = None,
    max_bytes: Bytes = None,
    seconds: Seconds = None,
    classes: Classes = None,
    per_class: PerClass = None,
    renumber: Renumber = False,
    protocol: TimedProtocol = None,
    net: TimedNet = None,
    force: Force = False,
) -> None:
    """Resize a ranked set in milliseconds, without training or condensing.

    Example: `condense-once resize ranked.safetensors --ipc 1 -o small.safetensors`

    To keep patches by another rule than the ranking of the file, use `select`.
    """
    from condense_once.condensed.bundled import find_set
    from condense_once.condensed.file import SetFile, refuse_output, save
    from condense_once.condensed.set_view import SetView
    from condense_once.condensed.subset import choose_subset, require_ranking

    path = find_set(file)
    refuse_output(out, force, inputs=[path])
    if seconds is None and (protocol or net):
        raise BadOption("--protocol and --net apply to --seconds only; leave them out.")
    budget = budget_of(ipc, total, fraction, max_bytes, classes, per_class, renumber, seconds)
    view = SetView.of_file(SetFile.open(path), name=file)
    if seconds is not None:
        require_ranking(view.header, file)
        budget = timed_budget(view.read(view.header.patches), seconds, budget, protocol, net)
    subset = choose_subset(view, budget)
    data = subset.take_from(view.read(subset.stop))
    save(data, out, force=force)
    typer.echo(f"{out}: {len(data)} patches of {classes_there(data)} classes, {human_bytes(out.stat().st_size)}.")
    note(subset.notes)
    suggest("evaluate", out)
