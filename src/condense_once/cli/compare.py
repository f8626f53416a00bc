from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from condense_once.cli.options import Json
from condense_once.cli.printing import echo, print_json, print_rows
from condense_once.text import value_range

Ranked = Annotated[str, typer.Argument(help="A ranked file, or the name of a bundled set.")]


def compare(one: Ranked, other: Ranked, as_json: Json = False) -> None:
    """Compare two rankings of the same patches: overlap and class balance at each size, and rank correlation.

    Example: `condense-once compare easy.safetensors hard.safetensors`
    """
    from condense_once.condensed.bundled import load
    from condense_once.selection.compare import compare as compared

    first, second = (replace(load(given), name=given) for given in (one, other))  # for messages: as the user named them
    found = compared(first, second)
    if as_json:
        print_json({"one": one, "other": other, "classes": first.classes, **asdict(found)})
        return
    print_rows(
        ("images per class", "patches", "shared", "by chance", "per class in one", "in the other"),
        (
            (
                size.ipc,
                size.patches,
                f"{len(size.shared)} ({len(size.shared) / size.patches:.0%})",
                f"{size.by_chance:.0f} ({size.by_chance / size.patches:.0%})",
                *map(value_range, size.counts),
            )
            for size in found.sizes
        ),
    )
    echo(f"Rank correlation of all {found.patches} patches (Spearman): {found.correlation:.3f}.")
