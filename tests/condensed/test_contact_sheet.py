from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import ImageDraw

from condense_once.condensed import class_labels as labels
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


def named(*classes: str) -> CondensedSet:
    """One image per class."""
    images = np.zeros((len(classes), 3, 32, 32), np.uint8)
    space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
    return CondensedSet.from_mosaics(images, np.arange(len(classes)), factor=1, space=space, classes=classes)


def drawn_texts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The texts that are drawn from now on, and their fonts."""
    seen: list[tuple[str, str]] = []
    draw = ImageDraw.ImageDraw.text

    def text(self: ImageDraw.ImageDraw, place: tuple[float, float], words: str, **given: Any) -> None:
        seen.append((words, given["font"].getname()[0]))
        draw(self, place, words, **given)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    return seen


def test_names_are_drawn_in_a_font_that_has_their_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """DejaVu Sans comes with matplotlib."""
    drawn = drawn_texts(monkeypatch)
    _, notes = contact_sheet(named("cat", "Bär", "naïve", "кот"))
    assert drawn == [("cat", "Aileron"), ("Bär", "DejaVu Sans"), ("naïve", "DejaVu Sans"), ("кот", "DejaVu Sans")]
    assert notes == []


def test_without_such_a_font_names_are_transliterated_or_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "system_fonts", lambda: iter(()))
    drawn = drawn_texts(monkeypatch)
    data = named("Bär", "cat", "猫", "Straße", "犬")
    _, notes = contact_sheet(data.take(np.array([0, 2, 3, 4])))  # numbers are those of the set, also without the cat
    assert [text for text, _ in drawn] == ["Bar", "class 2", "Strasse", "class 4"]
    assert notes == [
        "No font here has the characters of some class names: class 2 is 猫, class 4 is 犬.",
        "No font here has the accents of some class names, which are written without them.",
    ]


def test_long_names_stay_different(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = drawn_texts(monkeypatch)
    contact_sheet(named("one_name_that_is_far_too_long_for_it", "another_name_that_is_far_too_long"))
    assert [text for text, _ in drawn] == ["one_name_that_is_far_to…", "another_name_that_is_fa…"]


def test_many_classes_are_arranged_side_by_side() -> None:
    colours = [(number, 255 - number, 7) for number in range(100)]
    data = replace(named(*(f"class {number}" for number in range(100))), cells=solid(colours, side=32))
    sheet, _ = contact_sheet(data)
    assert 1 < sheet.width / sheet.height < 2
    pixels = np.asarray(sheet).reshape(-1, 3)
    assert {tuple(colour) for colour in np.unique(pixels, axis=0).tolist()} >= set(colours)  # every class is there
    drawn = (np.asarray(sheet)[2] == 7).any(1) | (np.asarray(sheet)[2, :, 2] == 7)  # columns with a patch
    ends = np.flatnonzero(drawn[:-1] & ~drawn[1:])
    names = np.flatnonzero((np.asarray(sheet)[:66] < 99).all(2).any(0))  # dark columns, of letters
    assert all(np.min(names[names > end] - end) > 20 for end in ends[:-1])  # a name is apart from the patch before
    few, _ = contact_sheet(named(*"abcdefghij"))
    assert few.height == 10 * 66 + 2


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
