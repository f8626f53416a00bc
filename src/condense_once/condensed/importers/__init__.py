"""Ways in: condensed sets as other projects write them.

A format reads what is in the files and nothing more (`Found`); what the files do not say, the caller says (`Facts`);
`settle` puts the two together or refuses with one sentence. Nothing is guessed in silence, and no code from a file is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from condense_once.condensed.importers import arrays, dc, folder, grid, idc, kip, mtt
from condense_once.condensed.importers.content import read_content
from condense_once.condensed.importers.format import Facts, Format
from condense_once.condensed.importers.settle import settle
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadFile
from condense_once.registry import Registry

FORMATS: Registry[Format] = Registry("formats")
for _format in (idc.FORMAT, dc.FORMAT, mtt.FORMAT, kip.FORMAT, grid.FORMAT, folder.FORMAT, arrays.FORMAT):
    FORMATS.add(_format)

__all__ = ["FORMATS", "Facts", "import_set"]


def import_set(paths: Sequence[str | Path], facts: Facts | None = None, format_name: str | None = None) -> CondensedSet:
    """Read somebody else's condensed set.

    The format is recognised by its content unless named. What was settled, and how, is kept in the set's
    `provenance["imported"]`; its `notes` are worth showing to a person.
    """
    files = [Path(path) for path in paths]
    chosen = FORMATS.get(format_name) if format_name else None
    content = read_content(files)
    if chosen is None:
        chosen = next((known for known in FORMATS if known.recognises(content)), None)
    if chosen is None:
        raise BadFile(
            f"{' and '.join(map(str, files))} cannot be recognised ({content.describe()}); name the format with --format,"
            f" one of: {', '.join(FORMATS.names())}."
        )
    if not chosen.recognises(content):
        raise BadFile(
            f"{' and '.join(map(str, files))} ({content.describe()}) is not laid out as {chosen.name}: {chosen.summary}."
        )
    facts = facts or Facts()
    return settle(chosen, chosen.read(content, facts), facts, files)
