from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.condensed.test_sprite import tile_of
from tests.explorer.conftest import ranked_set
from tests.explorer.test_agreement import page_contents

import condense_once
from condense_once.condensed.mosaic import encode
from condense_once.data.source import ArraySplit, Source
from condense_once.explorer.real_images import correlations, nearest_real_images


def real_source(seed: int = 0) -> Source:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (60, 3, 8, 8)).astype(np.uint8)
    split = ArraySplit(images, np.arange(60) % 3)
    return Source("reals", ("class 0", "class 1", "class 2"), (0.5,) * 3, (0.25,) * 3, {"train": split})


def condensed_from(source: Source) -> tuple[condense_once.CondensedSet, np.ndarray]:
    """A set that has moved a little from its init, and the training images it began as, by origin."""
    split = source.train
    rows = np.concatenate([np.flatnonzero(np.asarray(split.labels) == label)[[5, 2, 9, 1]] for label in range(3)])
    mosaics = np.concatenate([encode(split.take(rows[4 * label : 4 * label + 4]), 2) for label in range(3)])
    moved = (mosaics * 0.8 + np.random.default_rng(1).integers(0, 40, mosaics.shape)).astype(np.uint8)
    space = condense_once.Space("pixels", source.mean, source.std)
    made = condense_once.CondensedSet.from_mosaics(
        moved, np.arange(3), factor=2, space=space, classes=source.classes, name="moved"
    )
    scores = {"lbpe": np.random.default_rng(2).random(len(made)).astype(np.float32)}
    from condense_once.selection.rank import rank_by_scores

    return rank_by_scores(replace(made, scores=scores), "lbpe"), rows


def test_a_patch_is_shown_beside_the_image_it_began_as() -> None:
    source = real_source()
    data, rows = condensed_from(source)
    found = nearest_real_images(data, source)
    assert found.similarity.min() > 0.9
    for row, origin in enumerate(data.origin):
        began = source.train.take(rows[[origin]])[0]
        np.testing.assert_array_equal(tile_of(found.sprite, row), began.transpose(1, 2, 0))


def test_classes_are_matched_by_name() -> None:
    source = real_source()
    data, _ = condensed_from(source)
    turned = replace(
        source,
        classes=source.classes[::-1],
        splits={"train": ArraySplit(source.train.take(np.arange(60)), 2 - np.asarray(source.train.labels))},
    )
    np.testing.assert_allclose(
        nearest_real_images(data, turned).similarity, nearest_real_images(data, source).similarity
    )


def test_a_picture_of_one_colour_is_like_nothing() -> None:
    plain = np.full((1, 3, 2, 2), 7, np.uint8)
    assert correlations(plain, np.random.default_rng(0).integers(0, 9, (4, 3, 4, 4)).astype(np.uint8)).max() == 0


def test_the_page_has_them_only_if_the_source_is_given(page_file: Path) -> None:
    source = real_source()
    data, _ = condensed_from(source)
    condense_once.report(data, page_file, train=False)
    assert page_contents(page_file)["real"] is None
    condense_once.report(data, page_file, source=source, train=False, force=True)
    assert page_contents(page_file)["real"]["source"] == "reals"


def test_a_source_of_other_classes_is_refused(page_file: Path) -> None:
    with pytest.raises(condense_once.BadOption):
        condense_once.report(ranked_set(classes=("x", "y", "z")), page_file, source=real_source(), train=False)
