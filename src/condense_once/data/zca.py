"""ZCA whitening as the projects of this field do it, fitted on a source, and its undoing.

Two recipes are in use. With x the images as rows, S and U the eigenvalues and -vectors of their covariance:

* `kip`: x are normalised images, each centred and scaled to length one; W = U (S + λ·mean(S))^(−½) Uᵀ, applied as xW.
* `kornia` (MTT's `--zca`): x are pixels in 0…1 less the mean image; W = U (S + λ)^(−½) Uᵀ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.data.source import Split

Recipe = Literal["kip", "kornia"]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Whitening:
    recipe: Recipe
    mean: Floats  # [ch, 1, 1] of the normalisation that comes before, if any
    std: Floats
    centre: Floats  # [d] the mean image; zero for `kip`
    matrix: Floats  # [d, d]
    inverse: Floats  # [d, d]

    def apply(self, pixels: Floats) -> Floats:
        """Pixels `[n, ch, h, w]` in 0…1 in the whitened space."""
        whitened: Floats = np.matmul(
            _rows(pixels, self.recipe, self.mean, self.std) - self.centre, self.matrix, dtype=np.float32
        )
        return whitened.reshape(pixels.shape)

    def undo(self, whitened: Floats) -> Floats:
        """Pixels again. `kip` forgets each image's brightness and contrast: they come back as those of an average image."""
        rows = whitened.reshape(len(whitened), -1) @ self.inverse + self.centre
        if self.recipe == "kip":
            rows = rows / (rows.std(axis=1, keepdims=True) + np.float32(1e-12))
        return rows.reshape(whitened.shape) * self.std + self.mean


def fit_whitening(
    split: Split,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    description: Mapping[str, Any],
    *,
    most: int | None = None,
) -> Whitening:
    """Fit on a split, or on `most` images spread evenly over it, as a space's description of its whitening says."""
    recipe: Recipe = description["recipe"]
    count = len(split.labels)
    chosen = np.unique(np.linspace(0, count - 1, min(most or count, count)).astype(np.int64))
    if recipe == "kornia":
        mean, std = (0.0,) * len(mean), (1.0,) * len(std)
    channels = np.array(mean, np.float32)[:, None, None], np.array(std, np.float32)[:, None, None]
    images = _rows(split.take(chosen).astype(np.float32) / np.float32(255), recipe, *channels)
    centre = images.mean(axis=0) if recipe == "kornia" else np.zeros(images.shape[1], np.float32)
    images -= centre
    values, vectors = _spectrum(images, len(images) - 1 if recipe == "kornia" else len(images))
    strength = description["regularisation"] * (values.sum() / images.shape[1] if recipe == "kip" else 1)
    matrix, inverse = (_power(values, vectors, strength, exponent) for exponent in (-0.5, 0.5))
    return Whitening(recipe, *channels, centre, matrix, inverse)


def _rows(pixels: Floats, recipe: Recipe, mean: Floats, std: Floats) -> Floats:
    rows = ((pixels - mean) / std).reshape(len(pixels), -1)
    if recipe == "kip":
        rows = rows - rows.mean(axis=1, keepdims=True)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)
    return rows


def _spectrum(rows: Floats, divisor: int) -> tuple[Floats, Floats]:
    """Eigenvalues and -vectors of the covariance; of fewer images than pixels only those that are not zero."""
    count, pixels = rows.shape
    scale = np.float32(max(divisor, 1))
    if count >= pixels:
        values, vectors = np.linalg.eigh(rows.T @ rows / scale)
        return values.clip(min=0), vectors
    values, mixtures = np.linalg.eigh(rows @ rows.T / scale)
    kept = values > values[-1] * 1e-6
    values = values[kept]
    return values, (rows.T @ mixtures[:, kept]) / np.sqrt(values * scale)


def _power(values: Floats, vectors: Floats, strength: float, exponent: float) -> Floats:
    """(covariance + strength)^exponent, where the directions that are not among the vectors have no variance."""
    empty = np.float32(strength**exponent)
    powers = (values + np.float32(strength)) ** np.float32(exponent) - empty
    result: Floats = (vectors * powers) @ vectors.T
    result[np.diag_indices_from(result)] += empty
    return result
