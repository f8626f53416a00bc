from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condense_once.condensed.contact_sheet import contact_sheet
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.open import open_source
from condense_once.data.zca import fit_zca


def solid(colours: list[tuple[int, int, int]], side: int = 32) -> np.ndarray:
    return np.stack([np.broadcast_to(np.array(c, np.uint8)[:, None, None], (3, side, side)) for c in colours])


def tiles(sheet: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The colour in the middle of every tile of a sheet of 64-pixel tiles."""
    left = sheet.shape[1] - columns * 66 - 2 + 32
    return np.array([[sheet[2 + 66 * r + 32, left + 66 * c] for c in range(columns)] for r in range(rows)])


@pytest.mark.parametrize("kind", ["pixels", "normalised"])
def test_colours_are_true_in_either_space_and_classes_are_rows(kind: str) -> None:
    colours = [(255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)]
    space = Space(kind, (0.4, 0.5, 0.6), (0.1, 0.2, 0.3))  # type: ignore[arg-type]
    images = solid(colours)
    stored = images if kind == "pixels" else space.from_pixels(images.astype(np.float32) / 255)
    made = CondensedSet.from_mosaics(stored, np.array([1, 0, 1, 0]), factor=1, space=space, classes=("a", "b"))
    sheet, notes = contact_sheet(made)
    found = tiles(np.asarray(sheet), 2, 2)
    expected = [[colours[1], colours[3]], [colours[0], colours[2]]]
    np.testing.assert_allclose(found, expected, atol=1)
    assert notes == []


def test_only_so_many_columns_are_drawn_and_said(pixel_set: CondensedSet) -> None:
    narrow, notes = contact_sheet(pixel_set, columns=2)
    wide, _ = contact_sheet(pixel_set, columns=8)
    assert narrow.width < wide.width
    assert "`columns`" in notes[0]


def test_grey_images_and_empty_classes_are_drawn_too(soft_set: CondensedSet) -> None:
    sheet, _ = contact_sheet(replace(soft_set, classes=(*soft_set.classes, "none"), soft_labels=None))
    assert sheet.height == len(np.unique(soft_set.labels)) * (60 + 2) + 2


def test_whitening_is_undone_for_the_picture() -> None:
    """A whitened photograph looks like itself again, up to brightness and contrast, which this recipe forgets."""
    sample = open_source("cifar10-sample")
    recipe = {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"}
    space = Space("zca", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616), recipe)
    photographs = sample.test.take(slice(0, 2)).astype(np.float32) / 255
    zca = fit_zca(sample.test, space.mean, space.std, recipe)
    whitened = zca.apply(photographs)
    made = CondensedSet.from_mosaics(whitened, np.array([0, 1]), factor=1, space=space, classes=("a", "b"))
    sheet, notes = contact_sheet(made)
    assert "undone" in notes[0]
    drawn = np.asarray(sheet)[2:66:2, -68:-4:2].transpose(2, 0, 1)
    assert np.corrcoef(drawn.ravel(), photographs[0].ravel())[0, 1] > 0.9


def test_without_its_source_a_whitened_set_is_drawn_in_grey_and_said(soft_set: CondensedSet) -> None:
    space = Space("zca", (0.3,), (0.4,), {"recipe": "kip", "regularisation": 0.1, "source": "unheard-of"})
    _, notes = contact_sheet(replace(soft_set, space=space))
    assert "download its source unheard-of" in notes[0]
