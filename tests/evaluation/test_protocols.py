from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.catalogue import CIFAR10, FASHION_MNIST, MNIST, SVHN
from condense_once.data.source import SourceInfo
from condense_once.evaluation.protocols import (
    AUTHORS,
    ID_FIELDS,
    PAPER,
    PROTOCOLS,
    QUICK,
    RECIPE_ID_FIELDS,
    Protocol,
    patches_per_class,
)
from condense_once.train.recipe import Recipe


def set_of(classes: int, ipc: int, *, factor: int = 1, side: int = 65) -> CondensedSet:
    """A set of this many images per class, by default large enough to count as ImageNet."""
    return CondensedSet.from_mosaics(
        np.zeros((classes * ipc, 1, side, side), np.uint8),
        np.repeat(np.arange(classes), ipc),
        factor=factor,
        space=Space("pixels", (0.5,), (0.25,)),
        classes=tuple(f"class {k}" for k in range(classes)),
    )


def test_ids_differ_by_everything_that_matters() -> None:
    assert len({protocol.id for protocol in PROTOCOLS}) == len(list(PROTOCOLS))
    assert replace(PAPER, summary="other words").id == PAPER.id
    assert replace(PAPER, small=replace(PAPER.small, lr=0.02)).id != PAPER.id
    assert replace(PAPER, epochs_by_ipc=((10, 5),)).id != PAPER.id
    assert (QUICK.report, AUTHORS.report) == ("last", "best and last")


def test_every_field_is_part_of_the_id_but_the_summary() -> None:
    """A new field has to be added to the table; it must not change the ids of stored results."""
    assert {*ID_FIELDS.values(), "summary"} == {field.name for field in fields(Protocol)}
    assert {*RECIPE_ID_FIELDS.values()} == {field.name for field in fields(Recipe)}


@pytest.mark.parametrize("stored", ["paper-42d567e5", "quick-d53c5ec7", "quick-twice-3eae66f8", "authors-19f86ec4"])
def test_ids_of_stored_results_stay(stored: str) -> None:
    assert PROTOCOLS.get(stored.rpartition("-")[0]).id == stored


def test_large_images_have_a_recipe_of_their_own() -> None:
    small, large = set_of(2, 1, side=64), set_of(2, 1, side=65)
    assert PAPER.recipe(small) == PAPER.small
    assert PAPER.recipe(large) == PAPER.large
    assert PAPER.large.augmentation == "imagenet"
    assert (AUTHORS.recipe(small).cutmix, AUTHORS.recipe(large).cutmix) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("ipc", "factor", "epochs"),
    [
        *((1, 1, 3000), (2, 1, 2000), (10, 1, 2000), (11, 1, 1500), (50, 1, 1500), (51, 1, 1000), (200, 1, 1000)),
        *((201, 1, 500), (500, 1, 500), (501, 1, 300), (1, 3, 2000), (10, 3, 1000), (20, 3, 1000)),
    ],
)
def test_the_authors_train_longer_on_fewer_large_patches(ipc: int, factor: int, epochs: int) -> None:
    data = set_of(2, ipc, factor=factor)
    assert patches_per_class(data) == ipc * factor**2
    assert AUTHORS.recipe(data).epochs == epochs
    assert PAPER.recipe(data).epochs == 1000


@pytest.mark.parametrize(("ipc", "epochs"), [(1, 2000), (10, 1300), (50, 1000), (51, 600), (201, 300)])
def test_the_authors_train_two_thirds_as_long_on_a_hundred_classes(ipc: int, epochs: int) -> None:
    data = set_of(1, ipc)
    assert AUTHORS.recipe(replace(data, classes=tuple(f"class {k}" for k in range(100)))).epochs == epochs


def test_small_images_always_get_the_authors_thousand_epochs() -> None:
    assert AUTHORS.recipe(set_of(2, 1, side=8)).epochs == 1000
    assert AUTHORS.recipe(set_of(2, 300, side=8)).epochs == 1000


def test_a_cut_set_remembers_how_large_it_was() -> None:
    """IPC 10 at factor 3 cut to one image per class: the length goes by the 90 patches per class that were condensed."""
    whole = set_of(10, 10, factor=3)
    kept = np.concatenate([np.flatnonzero(whole.labels == label)[:9] for label in range(10)])
    for rows in (kept, kept + 81, np.random.default_rng(0).permutation(900)[:90]):
        cut = whole.take(rows)
        assert 80 <= patches_per_class(cut) <= 90
        assert AUTHORS.recipe(cut).epochs == 1000


def digits(known: SourceInfo) -> CondensedSet:
    """A set as it is imported for a known source, but for the names of its classes."""
    return CondensedSet.from_mosaics(
        np.zeros((2, *known.shape), np.uint8),
        np.arange(2),
        factor=1,
        space=Space("pixels", known.mean, known.std),
        classes=("0", "1"),
    )


@pytest.mark.parametrize("protocol", [PAPER, QUICK, AUTHORS], ids=lambda protocol: protocol.name)
def test_digits_are_not_mirrored(protocol: Protocol) -> None:
    for known, flips in ((CIFAR10, True), (FASHION_MNIST, True), (MNIST, False), (SVHN, False)):
        recipe = protocol.recipe(digits(known))
        expected = "color_crop_flip_scale_rotate" if flips else "color_crop_scale_rotate"
        assert recipe == replace(protocol.small, augmentation=expected)


def test_the_name_of_the_test_images_says_digits_too() -> None:
    own = replace(digits(SVHN), space=Space("pixels", (0.5,) * 3, (0.5,) * 3))
    assert "flip" in PAPER.recipe(own, "mine").augmentation
    assert "flip" not in PAPER.recipe(own, "svhn").augmentation
