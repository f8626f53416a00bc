"""MTT and its successors (TESLA, DATM): two files, `images_best.pt` and `labels_best.pt`, with hard or soft labels.

Images are normalised or ZCA-whitened, which the files do not record. Soft labels that are no probabilities are logits: the
loss of FTD and DATM applies a softmax to them.
"""

from __future__ import annotations

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile, cifar_statistics
from condense_once.condensed.importers.labels import read_labels
from condense_once.condensed.importers.sniff import OpenedFiles, is_pair, to_numpy


def _recognises(opened: OpenedFiles) -> bool:
    if opened.kind != "torch" or len(opened.values) != 2:
        return False
    pairs = (opened.values, opened.values[::-1])
    soft = (pair for pair in pairs if is_pair(pair, label_axes=2))
    return any(is_pair(pair, label_axes=1) for pair in pairs) or any(pair[0].shape[1] in (1, 3) for pair in soft)


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    main = 0 if opened.values[0].ndim == 4 else 1
    mean, std = cifar_statistics(options)
    images, labels = to_numpy(opened.values[main], "images"), read_labels(opened.values[1 - main])
    return ParsedFile(
        images, labels.hard, soft_labels=labels.soft, label_kind=labels.soft_or_logits, factor=1, mean=mean, std=std,
        main=main, notes=labels.notes,
    )  # fmt: skip


FORMAT = Format("mtt", "MTT, TESLA or DATM: a pair of .pt files, images and labels", _recognises, _read)
