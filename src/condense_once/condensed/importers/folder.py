"""A folder with one sub-folder of images per class."""

from __future__ import annotations

import re

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile
from condense_once.condensed.importers.sniff import OpenedFiles
from condense_once.data.encoded import class_folders
from condense_once.data.image_folder import load_image_folder


def _recognises(opened: OpenedFiles) -> bool:
    return opened.kind == "folder" and len(opened.values) == 1


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    source = load_image_folder(opened.values[0], size=options.size)
    # Whoever names the classes may mean ids of ImageNet by other words than ours.
    classes = source.classes if options.classes is None else class_folders(source.train) or source.classes
    # Exported folders are numbered so that they sort by label.
    if all(re.match(rf"0*{label}-.", name) for label, name in enumerate(classes)):
        classes = tuple(name.partition("-")[2] for name in classes)
    return ParsedFile(
        source.train.take(slice(None)), source.train.labels, space="pixels", classes=classes, renamable=True
    )


FORMAT = Format("folder", "a folder of images, one sub-folder per class", _recognises, _read, frozenset({"size"}))
