"""The real images of a run in ZCA space: a source whose images are whitened already."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.space import Space
from condense_once.data.source import Source, Split
from condense_once.data.zca import Zca, ZcaMethod
from condense_once.data.zca_store import kept_zca, zca_path
from condense_once.errors import BadOption
from condense_once.nets import is_large


def zca_space(source: Source, regularisation: float, method: ZcaMethod = "kornia") -> Space:
    """The space of images whitened by a fit on the train split of a source; by default as kornia and MTT do it."""
    description = {"recipe": method, "regularisation": regularisation, "source": source.name}
    return Space("zca", source.mean, source.std, description)


def whitened_source(source: Source, space: Space) -> Source:
    """The train split of a source with whitened images in place of pixels; network inputs as they are."""
    shape = source.train.shape
    if is_large(shape):
        size = "×".join(map(str, shape))
        raise BadOption(
            f"Images of {size} are too large for ZCA, whose matrix has a row for every value; override space with normalised,"
            " or make the images smaller (`size` 64)."
        )
    zca = kept_zca(source.train, source.mean, source.std, space.zca)
    channels = shape[0]
    return Source(
        source.name, source.classes, (0.0,) * channels, (1.0,) * channels, {"train": WhitenedSplit(source.train, zca)}
    )


def with_fit(space: Space, source: Source) -> Space:
    """A ZCA space that names its kept fit on a source, so that sets of it can be used where only the fit is left."""
    fit = zca_path(source.train, source.mean, source.std, space.zca).stem
    return replace(space, zca={**space.zca, "fit": fit})


@dataclass(frozen=True)
class WhitenedSplit:
    """Whitened images on the scale of 8-bit pixels, but neither rounded nor clipped."""

    split: Split
    zca: Zca

    @property
    def labels(self) -> NDArray[np.int64]:
        return self.split.labels

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.split.shape

    def take(self, rows: slice | NDArray[Any]) -> NDArray[Any]:
        pixels = self.split.take(rows).astype(np.float32) / np.float32(255)
        return self.zca.apply(pixels) * np.float32(255)
