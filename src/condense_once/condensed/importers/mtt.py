"""MTT: two files, `images_best.pt` and `labels_best.pt`; normalised or ZCA-whitened, which only the maker knows."""

from __future__ import annotations

from condense_once.condensed.importers.content import Content, to_numpy
from condense_once.condensed.importers.format import Facts, Format, Found


def _recognises(content: Content) -> bool:
    return content.kind == "torch" and sorted(getattr(value, "ndim", 0) for value in content.values) == [1, 4]


def _read(content: Content, facts: Facts) -> Found:
    labels, images = sorted(content.values, key=lambda value: value.ndim)
    return Found(to_numpy(images, "images"), to_numpy(labels, "labels"), factor=1)


FORMAT = Format("mtt", "MTT: a pair of .pt files, images and labels", _recognises, _read)
