"""ZCA whitening and its inverse, fitted on a source as the projects of this field do it.

Three methods are in use. With x the images as rows, S and U the eigenvalues and eigenvectors of their covariance:

* `kip`: x are normalised images, each centred and scaled to unit length; W = U (S + λ·mean(S))^(−½) Uᵀ, applied as xW.
* `rfad`: the same for normalised images as they are.
* `kornia` (MTT's `--zca`): x are pixels in 0…1 minus the mean image; W = U (S + λ)^(−½) Uᵀ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condense_once.data.source import Split

ZcaMethod = Literal["kip", "kornia", "rfad"]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Zca:
    method: ZcaMethod
    mean: Floats  # [ch, 1, 1] of the normalisation before ZCA, if any
    std: Floats
    centre: Floats  # [d] the mean image; zero but for `kornia`
    matrix: Floats  # [d, d]
    inverse: Floats  # [d, d]

    def apply(self, pixels: Floats) -> Floats:
        """Whitened values of pixels `[n, ch, h, w]` in 0…1."""
        whitened: Floats = np.matmul(
            _rows(pixels, self.method, self.mean, self.std) - self.centre, self.matrix, dtype=np.float32
        )
        return whitened.reshape(pixels.shape)

    def undo(self, whitened: Floats) -> Floats:
        """Pixels of whitened values; `kip` loses each image's brightness and contrast, so these become average."""
        rows = whitened.reshape(len(whitened), -1) @ self.inverse + self.centre
        if self.method == "kip":
            rows = rows / (rows.std(axis=1, keepdims=True) + np.float32(1e-12))
        return rows.reshape(whitened.shape) * self.std + self.mean


class Spectrum(NamedTuple):
    """What a whitening is made of, for any regularisation."""

    centre: Floats  # [d] the mean image; zero but for `kornia`
    values: Floats  # [r] eigenvalues of the covariance
    vectors: Floats  # [d, r] and its eigenvectors


def fit_zca(
    split: Split,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    description: Mapping[str, Any],
    *,
    max_images: int | None = None,
) -> Zca:
    """Fit on a split, or on `max_images` evenly spaced images of it, by the description in `Space.zca`."""
    spectrum = fit_spectrum(split, mean, std, description["recipe"], max_images=max_images)
    return zca_of(spectrum, mean, std, description)


def fit_spectrum(
    split: Split,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    method: ZcaMethod,
    *,
    max_images: int | None = None,
) -> Spectrum:
    count = len(split.labels)
    chosen = np.unique(np.linspace(0, count - 1, min(max_images or count, count)).astype(np.int64))
    pixels = split.take(chosen).astype(np.float32) / np.float32(255)
    images = _rows(pixels, method, *_statistics(method, mean, std))
    centre = images.mean(axis=0) if method == "kornia" else np.zeros(images.shape[1], np.float32)
    images -= centre
    return Spectrum(centre, *_spectrum(images, len(images) - 1 if method == "kornia" else len(images)))


def zca_of(spectrum: Spectrum, mean: tuple[float, ...], std: tuple[float, ...], description: Mapping[str, Any]) -> Zca:
    """The whitening by a spectrum and the description in `Space.zca`."""
    method: ZcaMethod = description["recipe"]  # the key in the file format
    centre, values, vectors = spectrum
    strength = description["regularisation"] * (1 if method == "kornia" else values.sum() / len(centre))
    matrix, inverse = (_power(values, vectors, strength, exponent) for exponent in (-0.5, 0.5))
    return Zca(method, *_statistics(method, mean, std), centre, matrix, inverse)


def _statistics(method: ZcaMethod, mean: tuple[float, ...], std: tuple[float, ...]) -> tuple[Floats, Floats]:
    """What images are normalised by before they are whitened, `[ch, 1, 1]`."""
    if method == "kornia":
        mean, std = (0.0,) * len(mean), (1.0,) * len(std)
    return np.array(mean, np.float32)[:, None, None], np.array(std, np.float32)[:, None, None]


def _rows(pixels: Floats, method: ZcaMethod, mean: Floats, std: Floats) -> Floats:
    rows = ((pixels - mean) / std).reshape(len(pixels), -1)
    if method == "kip":
        rows = rows - rows.mean(axis=1, keepdims=True)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)
    return rows


def _spectrum(rows: Floats, divisor: int) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of the covariance; with fewer images than pixels, only the non-zero ones."""
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
    """(covariance + strength)^exponent; directions outside the span of the vectors have zero variance."""
    empty = np.float32(strength**exponent)
    powers = (values + np.float32(strength)) ** np.float32(exponent) - empty
    result: Floats = (vectors * powers) @ vectors.T
    result[np.diag_indices_from(result)] += empty
    return result
