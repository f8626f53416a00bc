"""KIP: images `[n, h, w, ch]`, usually whitened, and learned label vectors `[n, C]`, as two arrays or one `.pt` pair.

The label vectors are kept as soft labels. Their largest entry gives the class, which need not come out balanced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from condense_once.condensed.importers.content import Content, to_numpy
from condense_once.condensed.importers.format import Facts, Format, Found
from condense_once.errors import BadFile

# KIP divides by the deviation over all pixels, which is not the figure that most others use for CIFAR-10.
STATS = {"cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))}


def _pair(content: Content) -> list[Any]:
    values = content.values
    if content.kind == "torch" and len(values) == 1 and isinstance(values[0], list | tuple):
        values = tuple(values[0])
    return sorted(values, key=lambda value: getattr(value, "ndim", 0))


def _recognises(content: Content) -> bool:
    return content.kind in ("npy", "torch") and [getattr(value, "ndim", 0) for value in _pair(content)] == [2, 4]


def _read(content: Content, facts: Facts) -> Found:
    labels, images = _pair(content)
    soft = to_numpy(labels, "labels").astype(np.float32)
    pictures = to_numpy(images, "images")
    if pictures.shape[-1] not in (1, 3):
        raise BadFile(f"KIP images are [n, height, width, channels], not {list(pictures.shape)}.")
    mean, std = STATS.get(facts.dataset or "", (None, None))
    hard = soft.argmax(1)
    counts = np.bincount(hard, minlength=soft.shape[1])
    return Found(
        pictures.transpose(0, 3, 1, 2),
        hard,
        soft_labels=soft,
        factor=1,
        whitening={"recipe": "kip", "regularisation": 0.1, "source": facts.dataset} if facts.dataset else None,
        notes=(
            f"Labels are learned vectors, kept as soft labels; by largest entry {counts.min()} to {counts.max()} a class.",
        ),
        mean=mean,
        std=std,
    )


FORMAT = Format("kip", "KIP: arrays of images [n, h, w, ch] and of learned label vectors", _recognises, _read)
