"""MTT: two files, `images_best.pt` and `labels_best.pt`; normalised or ZCA-whitened, which only the maker knows."""

from __future__ import annotations

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile, cifar_statistics
from condense_once.condensed.importers.sniff import Content, to_numpy


def _recognises(content: Content) -> bool:
    return content.kind == "torch" and sorted(getattr(value, "ndim", 0) for value in content.values) == [1, 4]


def _read(content: Content, facts: ImportOptions) -> ParsedFile:
    main = 0 if content.values[0].ndim == 4 else 1
    mean, std = cifar_statistics(facts)
    images, labels = to_numpy(content.values[main], "images"), to_numpy(content.values[1 - main], "labels")
    return ParsedFile(images, labels, factor=1, mean=mean, std=std, main=main)


FORMAT = Format("mtt", "MTT: a pair of .pt files, images and labels", _recognises, _read)
