"""A dataset folder of our own export for Hugging Face: the set in it, as it was."""

from __future__ import annotations

from dataclasses import fields, replace

from condense_once.condensed.file import SetFile
from condense_once.condensed.huggingface import SET_FILE, is_dataset_folder
from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile
from condense_once.condensed.importers.sniff import OpenedFiles
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadFile, BadOption


def _recognises(opened: OpenedFiles) -> bool:
    return opened.kind == "folder" and len(opened.values) == 1 and is_dataset_folder(opened.values[0])


def _load(opened: OpenedFiles, options: ImportOptions) -> CondensedSet:
    given = [field.name for field in fields(options) if getattr(options, field.name) is not None]
    if surplus := [name for name in given if name != "name"]:
        raise BadOption(f"{opened.names[0]} states everything about its set; leave out `{surplus[0]}`.")
    data = SetFile.open(opened.values[0] / SET_FILE).read()
    return data if options.name is None else replace(data, name=options.name)


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    raise BadFile(f"{opened.names[0]} is read as a whole.")  # `load` is called instead


FORMAT = Format("huggingface", "a Hugging Face dataset folder that `export` wrote", _recognises, _read, load=_load)
