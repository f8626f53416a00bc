"""KIP: images `[n, h, w, ch]`, usually whitened, and learned label vectors `[n, C]`, as two arrays or one `.pt` pair.

The label vectors become soft labels. Their largest entry is the class, so classes may be unbalanced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile
from condense_once.condensed.importers.sniff import OpenedFiles, is_pair, to_numpy
from condense_once.errors import BadFile

# KIP divides by the std over all pixels, unlike most other projects for CIFAR-10.
STATISTICS = {"cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))}


def _pair(opened: OpenedFiles) -> tuple[Any, ...]:
    one = len(opened.values) == 1 and isinstance(opened.values[0], list | tuple)
    return tuple(opened.values[0]) if one else opened.values


def _recognises(opened: OpenedFiles) -> bool:
    values = _pair(opened)
    return opened.kind in ("npy", "torch") and (is_pair(values, label_axes=2) or is_pair(values[::-1], label_axes=2))


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    values = _pair(opened)
    main = 0 if values[0].ndim == 4 else 1
    soft = to_numpy(values[1 - main], "labels").astype(np.float32)
    images = to_numpy(values[main], "images")
    if images.shape[-1] not in (1, 3):
        raise BadFile(f"KIP images are [n, height, width, channels], not {list(images.shape)}.")
    hard = soft.argmax(1)
    counts = np.bincount(hard, minlength=soft.shape[1])
    notes = [
        f"Labels are learned vectors, kept as soft labels; by largest entry {counts.min()} to {counts.max()} per class."
    ]
    mean = std = None
    if options.mean is None and options.dataset in STATISTICS:
        mean, std = STATISTICS[options.dataset]
        notes.append(f"Mean and std are KIP's own for {options.dataset}; pass `mean` and `std` if yours differ.")
    return ParsedFile(
        images.transpose(0, 3, 1, 2), hard, soft_labels=soft, factor=1, mean=mean, std=std,
        main=main if len(opened.values) == 2 else 0, notes=tuple(notes),
    )  # fmt: skip


FORMAT = Format("kip", "KIP: arrays of images [n, h, w, ch] and of learned label vectors", _recognises, _read)
