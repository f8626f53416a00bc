"""ZCA whitening as the projects of this field do it, fitted on a source, and its undoing.

Two recipes are in use. With x the normalised images as rows, S and U the eigenvalues and -vectors of their covariance:

* `kip`: every image is first centred and scaled to length one; W = U (S + λ·mean(S))^(−½) Uᵀ, applied as xW.
* `kornia` (MTT's `--zca`): the mean image is subtracted; W = U (S + λ)^(−½) Uᵀ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.data.source import Split
from condense_once.errors import BadOption

Recipe = Literal["kip", "kornia"]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Whitening:
    recipe: Recipe
    centre: Floats  # [d] the mean image; zero for `kip`
    matrix: Floats  # [d, d]
    inverse: Floats  # [d, d]

    def apply(self, normalised: Floats) -> Floats:
        """Normalised images `[n, ch, h, w]` in the whitened space."""
        rows = _rows(normalised, self.recipe) - self.centre
        whitened: Floats = np.matmul(rows, self.matrix, dtype=np.float32)
        return whitened.reshape(normalised.shape)

    def undo(self, whitened: Floats) -> Floats:
        """Normalised images again. `kip` forgets each image's brightness and contrast: they come back as zero and one."""
        rows = whitened.reshape(len(whitened), -1) @ self.inverse + self.centre
        if self.recipe == "kip":
            rows = rows / (rows.std(axis=1, keepdims=True) + 1e-12)
        return rows.reshape(whitened.shape)


def fit_whitening(
    split: Split,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    description: Mapping[str, Any],
    *,
    most: int | None = None,
) -> Whitening:
    """Fit on a split, or on `most` images spread evenly over it."""
    recipe = description.get("recipe")
    strength = description.get("regularisation")
    if recipe not in ("kip", "kornia") or not isinstance(strength, int | float) or strength <= 0:
        raise BadOption(
            f"A whitening needs a recipe (kip or kornia) and a regularisation above zero, not {dict(description)}."
        )
    count = len(split.labels)
    rows = np.unique(np.linspace(0, count - 1, min(most or count, count)).astype(np.int64))
    pixels = split.take(rows).astype(np.float32) / np.float32(255)
    channels = (np.array(mean, np.float32)[:, None, None], np.array(std, np.float32)[:, None, None])
    images = _rows((pixels - channels[0]) / channels[1], recipe)
    centre = images.mean(axis=0) if recipe == "kornia" else np.zeros(images.shape[1], np.float32)
    images -= centre
    values, vectors = _spectrum(images)
    strength *= values.sum() / images.shape[1] if recipe == "kip" else 1
    return Whitening(recipe, centre, _power(values, vectors, strength, -0.5), _power(values, vectors, strength, 0.5))


def _spectrum(rows: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and -vectors of the covariance; of fewer images than pixels only those that are not zero."""
    count, pixels = rows.shape
    if count >= pixels:
        values, vectors = np.linalg.eigh(rows.T @ rows / np.float32(count))
        return values.clip(min=0), vectors
    values, mixtures = np.linalg.eigh(rows @ rows.T / np.float32(count))
    kept = values > values[-1] * 1e-6
    values = values[kept]
    return values, (rows.T @ mixtures[:, kept]) / np.sqrt(values * count)


def _power(values: Floats, vectors: Floats, strength: float, exponent: float) -> Floats:
    """(covariance + strength)^exponent, where the directions that are not among the vectors have no variance."""
    empty = np.float32(strength**exponent)
    powers = (values + np.float32(strength)) ** np.float32(exponent) - empty
    result: Floats = (vectors * powers) @ vectors.T
    result[np.diag_indices_from(result)] += empty
    return result


def _rows(images: Floats, recipe: Recipe) -> Floats:
    rows = images.reshape(len(images), -1)
    if recipe == "kip":
        rows = rows - rows.mean(axis=1, keepdims=True)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)
    return rows
