from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from condense_once.cli.options import Json
from condense_once.cli.printing import note, print_json, print_rows
from condense_once.errors import UnknownName
from condense_once.registry import Registry, nearest

# Each registry is imported only when it is listed.
KINDS = {
    "sources": ("data.catalogue", "SOURCES"),
    "sets": ("condensed.bundled", "SETS"),
    "formats": ("condensed.importers", "FORMATS"),
    "exporters": ("condensed.exporters", "EXPORTERS"),
    "nets": ("nets", "NETS"),
    "protocols": ("evaluation.protocols", "PROTOCOLS"),
    "metrics": ("metrics", "METRICS"),
    "rules": ("selection.rule", "RULES"),
    "selectors": ("selection.selectors", "SELECTORS"),
    "condensers": ("condensing", "CONDENSERS"),
    "presets": ("condensing", "PRESETS"),
    "studies": ("studies", "STUDIES"),
}

SINGULAR = {"studies": "study"}


def list_(
    kind: Annotated[
        str,
        typer.Argument(
            help="What to list: sources, sets, formats, exporters, nets, protocols, metrics, rules, selectors,"
            " condensers, presets or studies."
        ),
    ],
    pattern: Annotated[str, typer.Argument(help="List only matching names, such as 'cifar*'.")] = "*",
    as_json: Json = False,
) -> None:
    """List what is available, such as metrics, rules or networks, one line each.

    Example: `condense-once list sets`
    """
    if kind not in KINDS:
        raise UnknownName(f"There is no list of {kind!r}; {nearest(kind, KINDS)}")
    module, name = KINDS[kind]
    registry: Registry[Any] = getattr(import_module(f"condense_once.{module}"), name)
    entries = [registry.get(name) for name in registry.names(pattern)]
    if not entries:
        raise UnknownName(f"No name among the {kind} matches {pattern!r}; leave out the pattern to list all.")
    if as_json:
        print_json({kind: [{"name": entry.name, "summary": entry.summary} for entry in entries]})
    else:
        print_rows((SINGULAR.get(kind, kind[:-1]), "what it is"), ((entry.name, entry.summary) for entry in entries))
        if kind == "rules":
            note(["Every metric is also a rule: METRIC, METRIC-easy, -hard or -auto, each also with -balanced."])
