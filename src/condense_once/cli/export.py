from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.option_names import with_options
from condense_once.cli.options import File, Force, Json, StoredDtypeName
from condense_once.cli.printing import echo, note, print_json


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
    dtype: StoredDtypeName = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Export a condensed set to other formats: PNG folders, npz, IDC's data.pt, Hugging Face datasets.

    Example: `condense-once export cifar10-idc-ipc10 -o patches.npz`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.exporters import export_set, find_exporter
    from condense_once.files import refuse_existing

    path, exporter = find_set(file), find_exporter(out, format_name)
    refuse_existing(out, force, inputs=[path])
    data = load(path)
    notes = export_set(data, out, exporter.name, dtype=dtype, force=force)
    if as_json:
        print_json(
            {
                "file": out,
                "format": exporter.name,
                "name": data.name,
                "patches": len(data),
                "notes": [*map(with_options, notes)],
            }
        )
    else:
        echo(f"{out} written.")
    note(notes)
