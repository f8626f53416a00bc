from __future__ import annotations

import numpy as np
import pytest

from condense_once.data.source import ArraySplit
from condense_once.data.whitening import fit_whitening
from condense_once.errors import BadOption


@pytest.fixture
def split(rng: np.random.Generator) -> ArraySplit:
    mixing = rng.random((12, 12))
    images = np.clip(rng.normal(size=(500, 12)) @ mixing * 20 + 128, 0, 255).astype(np.uint8)
    return ArraySplit(images.reshape(500, 3, 2, 2), np.zeros(500, np.int64))


def normalised(split: ArraySplit) -> np.ndarray:
    return (split.images.astype(np.float32) / 255 - 0.5) / np.float32(0.25)


@pytest.mark.parametrize("recipe", ["kip", "kornia"])
def test_whitened_data_are_white_and_come_back(split: ArraySplit, recipe: str) -> None:
    whitening = fit_whitening(split, (0.5,) * 3, (0.25,) * 3, {"recipe": recipe, "regularisation": 1e-6})
    images = normalised(split)
    rows = whitening.apply(images).reshape(500, -1).astype(np.float64)
    covariance = rows.T @ rows / 500
    # `kip` removes each image's mean, so one direction of twelve is left empty
    values = np.linalg.eigvalsh(covariance)[1 if recipe == "kip" else 0 :]
    np.testing.assert_allclose(values, 1, atol=0.05)
    back = whitening.undo(whitening.apply(images)).reshape(500, -1)
    flat = images.reshape(500, -1)
    if recipe == "kip":
        flat = (flat - flat.mean(1, keepdims=True)) / flat.std(1, keepdims=True)
    np.testing.assert_allclose(back, flat, atol=0.02)


def test_regularisation_is_relative_for_kip_and_absolute_for_kornia(split: ArraySplit) -> None:
    """The matrix against one worked out by a general matrix square root."""
    flat = normalised(split).reshape(500, -1).astype(np.float64)
    unit = flat - flat.mean(1, keepdims=True)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    centred = flat - flat.mean(0)
    for recipe, x, scale in (("kip", unit, np.trace(unit.T @ unit / 500) / 12), ("kornia", centred, 1.0)):
        matrix = fit_whitening(split, (0.5,) * 3, (0.25,) * 3, {"recipe": recipe, "regularisation": 0.1}).matrix
        target = x.T @ x / 500 + 0.1 * scale * np.eye(12)
        np.testing.assert_allclose(matrix @ target @ matrix, np.eye(12), atol=1e-3)


@pytest.mark.parametrize(
    "description", [{}, {"recipe": "pca", "regularisation": 0.1}, {"recipe": "kip", "regularisation": 0}]
)
def test_a_description_that_says_too_little_is_refused(split: ArraySplit, description: dict[str, object]) -> None:
    with pytest.raises(BadOption, match="recipe"):
        fit_whitening(split, (0.5,) * 3, (0.25,) * 3, description)
