from __future__ import annotations

import numpy as np
import pytest

from condense_once.data.source import ArraySplit
from condense_once.data.zca import fit_zca

HALF, QUARTER = (0.5,) * 3, (0.25,) * 3


@pytest.fixture
def split(rng: np.random.Generator) -> ArraySplit:
    mixing = rng.random((12, 12))
    images = np.clip(rng.normal(size=(500, 12)) @ mixing * 20 + 128, 0, 255).astype(np.uint8)
    return ArraySplit(images.reshape(500, 3, 2, 2), np.zeros(500, np.int64))


def pixels(split: ArraySplit) -> np.ndarray:
    return split.images.astype(np.float32) / 255


@pytest.mark.parametrize("method", ["kip", "kornia"])
def test_whitened_data_are_white_and_come_back(split: ArraySplit, method: str) -> None:
    zca = fit_zca(split, HALF, QUARTER, {"recipe": method, "regularisation": 1e-6})
    images = pixels(split)
    rows = zca.apply(images).reshape(500, -1).astype(np.float64)
    covariance = rows.T @ rows / (500 if method == "kip" else 499)
    # `kip` removes each image's mean, so one direction of twelve is left empty
    values = np.linalg.eigvalsh(covariance)[1 if method == "kip" else 0 :]
    np.testing.assert_allclose(values, 1, atol=0.05)
    back = zca.undo(zca.apply(images)).reshape(500, -1)
    flat = images.reshape(500, -1)
    if method == "kip":  # brightness and contrast of each image are forgotten
        flat = (flat - flat.mean(1, keepdims=True)) / flat.std(1, keepdims=True) * 0.25 + 0.5
    np.testing.assert_allclose(back, flat, atol=0.02)


def test_kip_whitens_normalised_images_and_kornia_pixels(split: ArraySplit) -> None:
    """The matrix against the covariance of images prepared in plain steps, strength relative or absolute."""
    means, stds = (0.5, 0.4, 0.3), (0.25, 0.2, 0.1)
    flat = pixels(split).astype(np.float64)
    unit = ((flat - np.reshape(means, (3, 1, 1))) / np.reshape(stds, (3, 1, 1))).reshape(500, -1)
    for row in unit:
        row -= row.mean()
        row /= np.sqrt((row**2).sum())
    centred = flat.reshape(500, -1) - flat.reshape(500, -1).mean(0)
    cases = (("kip", unit, 500, np.trace(unit.T @ unit / 500) / 12), ("kornia", centred, 499, 1.0))
    for method, x, divisor, scale in cases:
        matrix = fit_zca(split, means, stds, {"recipe": method, "regularisation": 0.1}).matrix
        target = x.T @ x / divisor + 0.1 * scale * np.eye(12)
        np.testing.assert_allclose(matrix @ target @ matrix, np.eye(12), atol=1e-3)


@pytest.mark.parametrize("method", ["kip", "kornia"])
def test_fewer_images_than_pixels_take_a_shorter_way_to_the_same_matrix(split: ArraySplit, method: str) -> None:
    few = ArraySplit(split.images[:7], split.labels[:7])
    description = {"recipe": method, "regularisation": 0.1}
    zca = fit_zca(few, HALF, QUARTER, description)
    np.testing.assert_allclose(zca.matrix @ zca.inverse, np.eye(12), atol=1e-4)
    if method == "kip":  # twice the same images have the same covariance
        twice = ArraySplit(np.tile(few.images, (2, 1, 1, 1)), np.tile(few.labels, 2))
        np.testing.assert_allclose(zca.matrix, fit_zca(twice, HALF, QUARTER, description).matrix, atol=1e-3)
