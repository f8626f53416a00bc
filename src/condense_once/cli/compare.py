from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.options import Json
from condense_once.cli.printing import echo, print_json, print_rows
from condense_once.errors import BadOption
from condense_once.text import plural, value_range

if TYPE_CHECKING:
    from condense_once.selection.compare import Comparison


def compare(
    one: Annotated[str, typer.Argument(help="A ranked file, with --rule a scored one, or the name of a bundled set.")],
    other: Annotated[str | None, typer.Argument(help="Another ranking of the same patches; not with --rule.")] = None,
    rules: Annotated[
        list[str] | None, typer.Option("--rule", help="Twice: two rules, by the scores of one file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two rankings, or two rules on one set: overlap and class balance at each size, and rank correlation.

    Example: `condense-once compare easy.safetensors hard.safetensors`

    Example: `condense-once compare scored.safetensors --rule yoco --rule ccs`
    """
    from condense_once.condensed.bundled import load
    from condense_once.selection.compare import compare as compared
    from condense_once.selection.compare import compare_rules

    # for messages: as the user named them
    first, *second = (replace(load(given), name=given) for given in (one, other) if given is not None)
    match second, rules or []:
        case [another], []:
            found, names = compared(first, another), (one, other)
        case [], [rule, another_rule]:
            found, names = compare_rules(first, rule, another_rule), (rule, another_rule)
        case _:
            raise BadOption("A comparison is of two files, or of two rules (--rule A --rule B) on one file.")
    if as_json:
        print_json({"file": one, "one": names[0], "other": names[1], "classes": first.classes, **asdict(found)})
    else:
        _print(found)


def _print(found: Comparison) -> None:
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
    if found.correlation is not None:
        echo(f"Rank correlation of {plural(found.patches, 'patch')} (Spearman): {found.correlation:.3f}.")
