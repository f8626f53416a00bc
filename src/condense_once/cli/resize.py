from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.printing import Force, human_bytes, note, suggest
from condense_once.errors import BadFile


def resize(
    file: Annotated[str, typer.Argument(help="A ranked file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The smaller file to write.")],
    ipc: Annotated[int | None, typer.Option(min=1, help="Images per class.")] = None,
    total: Annotated[int | None, typer.Option(min=1, help="Patches in all.")] = None,
    fraction: Annotated[str | None, typer.Option(help="Share of the patches, such as 0.25.")] = None,
    most_bytes: Annotated[str | None, typer.Option("--bytes", help="The file is never larger, such as 64KiB.")] = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B,…", help="Only these classes.")] = None,
    per_class: Annotated[Path | None, typer.Option(help="JSON file: class name to number of patches.")] = None,
    renumber: Annotated[bool, typer.Option("--renumber", help="Number the chosen classes from 0.")] = False,
    force: Force = False,
) -> None:
    """Take a smaller set from a ranked one, in milliseconds: no training, no condensing.

    Example: `condense-once resize ranked.safetensors --ipc 1 -o small.safetensors`
    """
    from condense_once.condensed.bundled import find_set
    from condense_once.condensed.file import SetFile, save
    from condense_once.files import refuse_existing
    from condense_once.select.budget import Budget
    from condense_once.select.choice import Stock, choose

    path = find_set(file)
    refuse_existing(out, force, inputs=[path])
    budget = Budget(
        ipc=ipc,
        total=total,
        fraction=fraction,
        bytes=most_bytes,
        classes=tuple(name.strip() for name in classes.split(",")) if classes else None,
        per_class=_counts(per_class) if per_class else None,
        renumber=renumber,
    )
    opened = SetFile.open(path)
    chosen = choose(budget, Stock.on_file(opened))
    data = chosen.of(opened.read(chosen.stop))
    save(data, out, force=force)
    typer.echo(f"{out}: {len(data)} patches of {len(data.classes)} classes, {human_bytes(out.stat().st_size)}.")
    note(chosen.notes)
    suggest(f"condense-once evaluate {out}")


def _counts(path: Path) -> dict[str, int]:
    from condense_once.files import existing_file

    try:
        counts = json.loads(existing_file(path).read_text(encoding="utf-8"))
    except ValueError:
        raise BadFile(f"{path} is not JSON.") from None
    if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
        raise BadFile(f"{path} must map class names to whole numbers.")
    return counts
