"""IDC and DREAM: `data.pt` holds `[images, labels]`, images in 0…1; the factor is not in the file."""

from __future__ import annotations

from condense_once.condensed.importers.content import Content, to_numpy
from condense_once.condensed.importers.format import Facts, Format, Found
from condense_once.data.known import CIFAR10


def _recognises(content: Content) -> bool:
    value = content.values[0]
    return (
        content.kind == "torch"
        and len(content.values) == 1
        and isinstance(value, list | tuple)
        and len(value) == 2
        and getattr(value[0], "ndim", 0) == 4
        and getattr(value[1], "ndim", 0) == 1
    )


def _read(content: Content, facts: Facts) -> Found:
    images, labels = content.values[0]
    # Both projects normalise CIFAR-100 with CIFAR-10's numbers.
    mean, std = (CIFAR10.mean, CIFAR10.std) if facts.dataset == "cifar100" else (None, None)
    return Found(to_numpy(images, "images"), to_numpy(labels, "labels"), space="pixels", mean=mean, std=std)


FORMAT = Format("idc", "IDC or DREAM: one .pt file with a pair of images in 0…1 and labels", _recognises, _read)
