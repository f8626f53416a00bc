from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.option_names import with_options
from condense_once.cli.options import File, Force, Json
from condense_once.cli.printing import echo, err_console, note, print_json


def show(
    file: File,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The PNG file to write; by default named after the set, in this folder."),
    ] = None,
    columns: Annotated[int, typer.Option(min=1, help="Patches per class to show.")] = 20,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a contact sheet: one class per row, true colours in every value space.

    Example: `condense-once show cifar10-idc-ipc10 -o sheet.png`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.contact_sheet import contact_sheet
    from condense_once.errors import BadOption
    from condense_once.files import atomic_file, refuse_existing

    path = find_set(file)
    target = out or Path(f"{path.stem}.png")
    if target.suffix.lower() != ".png":
        raise BadOption(f"A contact sheet is a PNG; choose a name that ends in .png, not {target}.")
    refuse_existing(target, force)
    with err_console.status("drawing"):
        sheet, notes = contact_sheet(load(path), columns=columns)
        with atomic_file(target, force=force) as handle:
            sheet.save(handle, "PNG")
    if as_json:
        print_json({"file": target, "width": sheet.width, "height": sheet.height, "notes": [*map(with_options, notes)]})
    else:
        echo(f"{target}: {sheet.width}×{sheet.height} pixels.")
    note(notes)
