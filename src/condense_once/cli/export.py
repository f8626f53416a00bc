from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.options import File, Force
from condense_once.cli.printing import echo, note


def export(
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file or folder to write.")],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format to write; by default that of the file extension. See: condense-once list exporters.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Export a condensed set to other formats: PNG folders, npz, IDC's data.pt, Hugging Face parquet.

    Example: `condense-once export cifar10-idc-ipc10 -o patches.npz`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.exporters import export_set
    from condense_once.files import refuse_existing

    path = find_set(file)
    refuse_existing(out, force, inputs=[path])
    notes = export_set(load(path), out, format_name, force=force)
    echo(f"{out} written.")
    note(notes)
