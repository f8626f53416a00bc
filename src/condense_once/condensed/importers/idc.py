"""IDC and DREAM: `data.pt` holds `[images, labels]`, images in 0…1; the factor is not in the file."""

from __future__ import annotations

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile, cifar_statistics
from condense_once.condensed.importers.sniff import OpenedFiles, is_pair, to_numpy


def _recognises(opened: OpenedFiles) -> bool:
    return opened.kind == "torch" and len(opened.values) == 1 and is_pair(opened.values[0], label_axes=1)


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    images, labels = opened.values[0]
    mean, std = cifar_statistics(options)
    return ParsedFile(to_numpy(images, "images"), to_numpy(labels, "labels"), space="pixels", mean=mean, std=std)


FORMAT = Format("idc", "IDC or DREAM: one .pt file with a pair of images in 0…1 and labels", _recognises, _read)
