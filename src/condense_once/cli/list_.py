from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from condense_once.cli.printing import Json, print_json, print_rows
from condense_once.errors import UnknownName
from condense_once.registry import Registry, nearest


def list_(
    kind: Annotated[str, typer.Argument(help="sources, sets, formats, exporters, nets, protocols or metrics.")],
    pattern: Annotated[str, typer.Argument(help="Only names that match, such as 'cifar*'.")] = "*",
    as_json: Json = False,
) -> None:
    """List what there is of a kind, with one line each.

    Example: `condense-once list sets`
    """
    if kind not in KINDS:
        raise UnknownName(f"There is nothing called {kind!r} to list; {nearest(kind, KINDS)}")
    registry = KINDS[kind]()
    entries = [registry.get(name) for name in registry.names(pattern)]
    if as_json:
        print_json([{"name": entry.name, "summary": entry.summary} for entry in entries])
    else:
        print_rows((kind[:-1], "what it is"), ((entry.name, entry.summary) for entry in entries))


# Registries live beside what they register; each is imported only when it is asked for.
def _sources() -> Registry[Any]:
    from condense_once.data.known import SOURCES

    return SOURCES


def _sets() -> Registry[Any]:
    from condense_once.condensed.bundled import SETS

    return SETS


def _formats() -> Registry[Any]:
    from condense_once.condensed.importers import FORMATS

    return FORMATS


def _exporters() -> Registry[Any]:
    from condense_once.condensed.exporters import EXPORTERS

    return EXPORTERS


def _nets() -> Registry[Any]:
    from condense_once.nets import NETS

    return NETS


def _metrics() -> Registry[Any]:
    from condense_once.metrics import METRICS

    return METRICS


def _protocols() -> Registry[Any]:
    from condense_once.evaluation.protocols import PROTOCOLS

    return PROTOCOLS


KINDS: dict[str, Callable[[], Registry[Any]]] = {
    "sources": _sources,
    "sets": _sets,
    "formats": _formats,
    "exporters": _exporters,
    "nets": _nets,
    "protocols": _protocols,
    "metrics": _metrics,
}
