"""KIP: images `[n, h, w, ch]`, usually whitened, and learned label vectors `[n, C]`, as two arrays or one `.pt` pair.

The label vectors become soft labels. Their largest entry is the class, so classes may be unbalanced.
"""

from __future__ import annotations

from typing import Any

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile, kernel_statistics
from condense_once.condensed.importers.labels import read_labels
from condense_once.condensed.importers.sniff import OpenedFiles, is_pair, to_numpy


def _pair(opened: OpenedFiles) -> tuple[Any, ...]:
    one = len(opened.values) == 1 and isinstance(opened.values[0], list | tuple)
    return tuple(opened.values[0]) if one else opened.values


def _recognises(opened: OpenedFiles) -> bool:
    values = _pair(opened)
    pairs = [pair for pair in (values, values[::-1]) if is_pair(pair, label_axes=2)]
    channels_last = any(pair[0].shape[3] in (1, 3) and pair[0].shape[1] not in (1, 3) for pair in pairs)
    return opened.kind in ("npy", "torch") and channels_last


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    values = _pair(opened)
    main = 0 if values[0].ndim == 4 else 1
    labels = read_labels(values[1 - main])
    mean, std, note = kernel_statistics(options, "KIP")
    return ParsedFile(
        to_numpy(values[main], "images").transpose(0, 3, 1, 2), labels.hard, soft_labels=labels.soft, factor=1,
        mean=mean, std=std, main=main if len(opened.values) == 2 else 0, notes=(*labels.notes, *note),
    )  # fmt: skip


FORMAT = Format("kip", "KIP: arrays of images [n, h, w, ch] and of learned label vectors", _recognises, _read)
