"""A folder with one sub-folder of images per class."""

from __future__ import annotations

import re

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile
from condense_once.condensed.importers.sniff import Content
from condense_once.data.image_folder import load_tree


def _recognises(content: Content) -> bool:
    return content.kind == "folder" and len(content.values) == 1


def _read(content: Content, facts: ImportOptions) -> ParsedFile:
    source = load_tree(content.values[0], size=facts.size)
    # Our own exports number the folders, so that they sort like the labels.
    numbered = all(re.match(rf"0*{label}-.", name) for label, name in enumerate(source.classes))
    classes = tuple(name.partition("-")[2] for name in source.classes) if numbered else source.classes
    return ParsedFile(source.train.take(slice(None)), source.train.labels, space="pixels", classes=classes)


FORMAT = Format("folder", "a folder of images, one sub-folder per class", _recognises, _read, frozenset({"size"}))
