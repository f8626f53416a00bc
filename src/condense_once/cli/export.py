from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.options import File, Force
from condense_once.cli.printing import note


def export(
    file: File,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file or folder to write; its extension selects the format.")
    ],
    format_name: Annotated[str | None, typer.Option("--format", help="See: condense-once list exporters.")] = None,
    force: Force = False,
) -> None:
    """Write a condensed set for other tools: PNG folders, npz, IDC's data.pt, Hugging Face parquet.

    Example: `condense-once export cifar10-idc-ipc10 -o patches.npz`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.exporters import export_set
    from condense_once.files import refuse_existing

    path = find_set(file)
    refuse_existing(out, force, inputs=[path])
    notes = export_set(load(path), out, format_name, force=force)
    typer.echo(f"{out} written.")
    note(notes)
