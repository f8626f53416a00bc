"""Coresets: selected real images of a source as a condensed set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.data.open import as_source
from condense_once.data.source import Source
from condense_once.errors import BadOption


def coreset(
    source: Source | str | Path,
    rows: Sequence[int] | NDArray[np.int64],
    *,
    scores: Mapping[str, ArrayLike] | None = None,
    ranking: Ranking | None = None,
) -> CondensedSet:
    """A coreset: the training images of a source in these rows, in this order, as a set of factor 1.

    With rows ordered best first and the `ranking` they were ordered by, it can be resized like any ranked set. `scores`
    cover all training images, as `score_source` returns them. Only the selected images are read.

    >>> from condense_once.data.source import ArraySplit
    >>> dots = ArraySplit(np.arange(4, dtype=np.uint8).reshape(4, 1, 1, 1), np.array([0, 1, 0, 1]))
    >>> source = Source("dots", ("even", "odd"), (0.5,), (0.5,), {"train": dots})
    >>> chosen = coreset(source, np.array([2, 1]), scores={"lbpe": np.float32([0.5, 0.75, 0.25, 1])})
    >>> chosen.cells.ravel().tolist(), chosen.labels.tolist(), chosen.scores["lbpe"].tolist()
    ([2, 1], [0, 1], [0.25, 0.75])
    """
    source = as_source(source)
    split, rows = source.train, np.asarray(rows, np.int64)
    images = len(split.labels)
    if outside := [row for row in rows.tolist() if not 0 <= row < images]:
        raise BadOption(
            f"`rows` must be from 0 to {images - 1}, the training images of {source.name}, not {outside[0]}."
        )
    _, height, width = split.shape
    return CondensedSet(
        cells=split.take(rows),
        labels=split.labels[rows],
        classes=source.classes,
        size=(height, width),
        factor=1,
        space=Space("pixels", source.mean, source.std),
        origin=rows,
        scores={metric: np.asarray(values, np.float32)[rows] for metric, values in (scores or {}).items()},
        ranking=ranking,
        name=source.name,
        provenance={"method": "real images, not condensed", "source": f"{source.name}, train split"},
    )
