"""A folder with one sub-folder of images a class; all images of one size."""

from __future__ import annotations

from condense_once.condensed.importers.content import Content
from condense_once.condensed.importers.format import Facts, Format, Found
from condense_once.data.tree import load_tree


def _recognises(content: Content) -> bool:
    return content.kind == "folder" and len(content.values) == 1


def _read(content: Content, facts: Facts) -> Found:
    source = load_tree(content.values[0])
    return Found(source.train.take(slice(None)), source.train.labels, space="pixels", classes=source.classes)


FORMAT = Format("folder", "a folder of images, one sub-folder a class", _recognises, _read)
