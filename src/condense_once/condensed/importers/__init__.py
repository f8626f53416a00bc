"""Ways in: condensed sets as other projects write them.

A format reads what is in the files and nothing more (`ParsedFile`); what the files do not say, the caller says (`ImportOptions`);
`settle` puts the two together or refuses with one sentence. Nothing is guessed in silence, and no code from a file is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from condense_once.condensed.importers import arrays, dc, folder, grid, idc, kip, mtt
from condense_once.condensed.importers.format import OF_SOME_FORMATS, Format, ImportOptions
from condense_once.condensed.importers.resolve import settle
from condense_once.condensed.importers.sniff import read_content
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadFile, BadOption
from condense_once.registry import Registry

FORMATS: Registry[Format] = Registry("formats")
for _format in (idc.FORMAT, dc.FORMAT, mtt.FORMAT, kip.FORMAT, grid.FORMAT, folder.FORMAT, arrays.FORMAT):
    FORMATS.add(_format)

__all__ = ["FORMATS", "ImportOptions", "import_set"]


def import_set(
    paths: Sequence[str | Path], facts: ImportOptions | None = None, format_name: str | None = None
) -> CondensedSet:
    """Read somebody else's condensed set.

    The format is recognised by its content unless named. What was settled, and how, is kept in the set's
    `provenance["imported"]`; its `notes` are worth showing to a person.
    """
    files, facts = [Path(path) for path in paths], facts or ImportOptions()
    named = FORMATS.get(format_name) if format_name else None
    try:
        content = read_content(files)
        what = f"{' and '.join(map(str, files))} ({content.describe()})"
        chosen = named or next((known for known in FORMATS if known.recognises(content)), None)
        if chosen is None:
            labels = "pass the file with its labels as well, or " if len(files) == 1 and not files[0].is_dir() else ""
            raise BadFile(
                f"{what} cannot be recognised; {labels}name the format with --format: {', '.join(FORMATS.names())}."
            )
        if not chosen.recognises(content):
            raise BadFile(f"{what} is not laid out as {chosen.name}: {chosen.summary}.")
        for option in OF_SOME_FORMATS:
            if getattr(facts, option) is not None and option not in chosen.options:
                raise BadOption(f"--{option} means nothing for {chosen.name}, as which {what} was read; leave it out.")
        return settle(chosen, chosen.read(content, facts), facts, files)
    except OSError as error:
        raise BadFile(f"{error.filename or files[0]} cannot be read: {error.strerror or error}.") from error
