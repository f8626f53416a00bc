"""Importers: condensed sets as other projects write them.

A format reads what its files contain (`ParsedFile`); the caller supplies what they do not (`ImportOptions`); `resolve`
combines the two or raises. Nothing is guessed silently, and no code from a file is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from condense_once.condensed.importers import arrays, dc, folder, grid, huggingface, idc, kip, mtt, parquet
from condense_once.condensed.importers.format import FORMAT_OPTIONS, Format, ImportOptions
from condense_once.condensed.importers.resolve import resolve
from condense_once.condensed.importers.sniff import open_files
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadFile, BadOption, CondenseOnceError, InaccessibleFile
from condense_once.registry import Registry

FORMATS: Registry[Format] = Registry("formats")
for _module in (idc, dc, mtt, kip, grid, huggingface, folder, parquet, arrays):
    FORMATS.add(_module.FORMAT)

__all__ = ["FORMATS", "ImportOptions", "import_set"]


def import_set(
    paths: str | Path | Sequence[str | Path], options: ImportOptions | None = None, format_name: str | None = None
) -> CondensedSet:
    """Import a condensed set of another project.

    The format is recognised by content unless named. How the set was read is recorded in `provenance["imported"]`; its
    `notes` list the assumptions. A set that comes back from Hugging Face is as it was, with nothing recorded.
    """
    files = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    given = options or ImportOptions()
    named = FORMATS.get(format_name) if format_name else None
    try:
        opened = open_files(files)
        what = f"{' and '.join(map(str, files))} ({opened.describe()})"
        chosen = named or next((known for known in FORMATS if known.recognises(opened)), None)
        if chosen is None:
            alone = len(files) == 1 and getattr(opened.values[0], "ndim", 0) in (1, 4)
            advice = "pass the other file of the pair as well" if alone else f"formats: {', '.join(FORMATS.names())}"
            raise BadFile(f"{what} is not a set of images [n, channels, height, width] and labels; {advice}.")
        if not chosen.recognises(opened):
            raise BadFile(f"{what} is not laid out as {chosen.name}: {chosen.summary}.")
        if chosen.load is not None:
            return chosen.load(opened, given)
        for option in FORMAT_OPTIONS:
            if getattr(given, option) is not None and option not in chosen.options:
                raise BadOption(f"`{option}` does not apply to the format {chosen.name} of {what}; leave it out.")
        return resolve(chosen, chosen.read(opened, given), given, files)
    except CondenseOnceError:
        raise
    except OSError as error:
        raise InaccessibleFile(f"{error.filename or files[0]} cannot be read: {error.strerror or error}.") from error
