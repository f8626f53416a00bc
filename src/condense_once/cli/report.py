from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.options import Force, Json
from condense_once.cli.printing import echo, note, print_json, track
from condense_once.text import human_bytes, plural


def report(
    file: Annotated[str, typer.Argument(help="A ranked file, or the name of a bundled set.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML page to write.")],
    store: Annotated[
        Path | None,
        typer.Option("--store", help="Store of studies with accuracies of the set; see: condense-once study."),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option("--compare", metavar="FILE", help="Another ranking of the same patches to show; repeatable."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", help="Source that the set was condensed from, to show the real image most like each patch."
        ),
    ] = None,
    train: Annotated[
        bool,
        typer.Option(
            help="Train a network for the map and the error curves, unless --store has its run; else the map is by pixels."
        ),
    ] = True,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a page that shows what every smaller set keeps: one HTML file, without a server or network.

    Example: `condense-once report cifar10-idc-ipc10 -o page.html`

    Example: `condense-once report ranked.safetensors --store studies.sqlite --compare hard.safetensors -o page.html`
    """
    from condense_once.explorer.report import report as write_report

    with track("scoring run") as progress:
        made = write_report(
            file,
            out,
            store=store,
            compare=compare or (),
            source=source,
            train=train,
            force=force,
            progress=progress,
            notify=lambda sentence: note([sentence]),
        )
    size = out.stat().st_size
    note(made.notes)
    if as_json:
        print_json(
            {
                "file": out,
                "bytes": size,
                "patches": made.patches,
                "rankings": made.rankings,
                "accuracies": made.accuracies,
                "map": made.map_of,
            }
        )
        return
    echo(f"{out}: {plural(made.patches, 'patch')}, {human_bytes(size)}. Open it in a browser.")
