"""MTT: two files, `images_best.pt` and `labels_best.pt`; normalised or ZCA-whitened, which the files do not record."""

from __future__ import annotations

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile, cifar_statistics
from condense_once.condensed.importers.sniff import OpenedFiles, to_numpy


def _recognises(opened: OpenedFiles) -> bool:
    return opened.kind == "torch" and sorted(getattr(value, "ndim", 0) for value in opened.values) == [1, 4]


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    main = 0 if opened.values[0].ndim == 4 else 1
    mean, std = cifar_statistics(options)
    images, labels = to_numpy(opened.values[main], "images"), to_numpy(opened.values[1 - main], "labels")
    return ParsedFile(images, labels, factor=1, mean=mean, std=std, main=main)


FORMAT = Format("mtt", "MTT: a pair of .pt files, images and labels", _recognises, _read)
