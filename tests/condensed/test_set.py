from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from condense_once.condensed.bundled import load
from condense_once.condensed.mosaic import encode
from condense_once.condensed.set import CHUNK, CondensedSet, Patch, Ranking
from condense_once.condensed.space import Space
from condense_once.errors import BadFile, BadOption

GREY = Space("pixels", (0.5,), (0.2,))


@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    factor=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_repacking_gives_back_the_same_mosaics_class_by_class(labels: list[int], factor: int, seed: int) -> None:
    mosaics = np.random.default_rng(seed).integers(0, 256, (len(labels), 1, 9, 9), dtype=np.uint8)
    made = CondensedSet.from_mosaics(mosaics, np.array(labels), factor=factor, space=GREY, classes=tuple("abcd"))
    images, classes = made.mosaics()
    order = np.argsort(labels, kind="stable")
    np.testing.assert_array_equal(images, mosaics[order])
    np.testing.assert_array_equal(classes, np.array(labels)[order])


def test_a_224_by_3_set_pads_with_grey_of_its_own_space(rng: np.random.Generator) -> None:
    space = Space("normalised", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    mosaics = rng.normal(size=(1, 3, 224, 224)).astype(np.float32)
    made = CondensedSet.from_mosaics(mosaics, np.array([0]), factor=3, space=space, classes=("a",))
    padded = space.to_pixels(made.cells[8:9])[0]
    np.testing.assert_allclose(padded[:, 74, :], 0.5, atol=1e-6)
    np.testing.assert_array_equal(made.mosaics()[0], mosaics)


def test_pixels_are_normalised_once_and_normalised_values_not_again(
    pixel_set: CondensedSet, soft_set: CondensedSet
) -> None:
    space = pixel_set.space
    expected = (pixel_set.patches() - np.reshape(space.mean, (3, 1, 1))) / np.reshape(space.std, (3, 1, 1))
    np.testing.assert_allclose(pixel_set.inputs(), expected, atol=1e-5)
    np.testing.assert_array_equal(soft_set.inputs(), soft_set.patches())


def test_taking_rows_takes_everything_that_belongs_to_them(soft_set: CondensedSet) -> None:
    scored = replace(soft_set, scores={"lbpe": np.arange(5, dtype=np.float32)})
    taken = scored.take(np.array([3, 0]))
    assert taken.origin.tolist() == [3, 0]
    assert taken.scores["lbpe"].tolist() == [3, 0]
    np.testing.assert_array_equal(taken.cells, soft_set.cells[[3, 0]])
    assert taken.soft_labels is not None
    np.testing.assert_array_equal(taken.soft_labels.argmax(1), taken.labels)


def test_real_images_encoded_and_decoded_stay_in_their_class() -> None:
    images = np.stack([np.full((3, 8, 8), 20 * k, np.uint8) for k in range(8)])
    mosaics = np.concatenate([encode(images[:4], 2), encode(images[4:], 2)])
    space = Space("pixels", (0.5,) * 3, (0.2,) * 3)
    made = CondensedSet.from_mosaics(mosaics, np.array([0, 1]), factor=2, space=space, classes=("a", "b"))
    assert made.cells[:, 0, 0, 0].tolist() == [0, 20, 40, 60, 80, 100, 120, 140]
    assert made.labels.tolist() == [0] * 4 + [1] * 4


def test_a_whole_set_is_repacked_as_it_was_condensed_even_if_ranked_since(rng: np.random.Generator) -> None:
    """Also where the side is not divisible and a cell from the middle would not fit at the edge."""
    mosaics = rng.integers(0, 256, (4, 1, 224, 224), dtype=np.uint8)
    labels = np.array([1, 0, 0, 1])
    made = CondensedSet.from_mosaics(mosaics, labels, factor=3, space=GREY, classes=("a", "b"))
    images, _ = made.take(rng.permutation(len(made))).mosaics()
    np.testing.assert_array_equal(images, mosaics[[1, 2, 0, 3]])


def test_an_uneven_class_cannot_be_packed(pixel_set: CondensedSet) -> None:
    with pytest.raises(BadOption, match="'ant' has 7 patches"):
        pixel_set.take(np.arange(1, len(pixel_set))).mosaics()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"labels": np.full(24, 3)}, "3 classes"),
        ({"labels": np.full(24, -1)}, "Labels run from -1"),
        ({"cells": np.zeros((24, 3, 4, 4), np.float32)}, "stored as uint8"),
        ({"cells": np.zeros((24, 2, 4, 4), np.uint8)}, "1 or 3 channels"),
        ({"cells": np.zeros((24, 3, 5, 5), np.uint8)}, "do not fit"),
        ({"cells": np.zeros((0, 3, 4, 4), np.uint8)}, "n > 0"),
        ({"origin": np.zeros(3, np.int64)}, "as many labels"),
        ({"classes": ("ant", "ant", "cat")}, "unique"),
        ({"scores": {"lbpe": np.full(24, np.nan, np.float32)}}, "finite"),
        ({"scores": {"lbpe": np.zeros(5, np.float32)}}, "one per patch"),
        ({"soft_labels": np.zeros((24, 2), np.float32)}, "Soft labels"),
        ({"space": Space("pixels", (0.5,), (0.5,))}, "as many means"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(
    pixel_set: CondensedSet, change: dict[str, object], complaint: str
) -> None:
    with pytest.raises(BadFile, match=complaint):
        replace(pixel_set, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "mean", "std"),
    [
        ("rgb", (0.5,), (0.5,)),
        ("pixels", (0.5,), (0.0,)),
        ("pixels", (0.5, 0.5), (0.5,)),
        ("pixels", (np.nan,), (1.0,)),
        ("zca", (0.5,), (1.0,)),
    ],
)
def test_an_invalid_space_is_refused(kind: str, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    with pytest.raises(BadOption):
        Space(kind, mean, std)  # type: ignore[arg-type]


def test_an_integer_gives_a_decoded_patch_with_its_label(pixel_set: CondensedSet) -> None:
    for row in (0, 5, -1, np.int32(3), np.uint8(2)):
        patch = pixel_set[row]
        assert isinstance(patch, Patch)
        assert (patch.image.dtype, patch.image.shape) == (np.float32, pixel_set.shape)
        np.testing.assert_array_equal(patch.image, pixel_set.patches()[row])
        assert type(patch.label) is int
        assert patch.label == pixel_set.labels[row]


@pytest.mark.parametrize("row", [24, -25, 10**9])
def test_a_row_beyond_the_end_is_an_index_error(pixel_set: CondensedSet, row: int) -> None:
    with pytest.raises(IndexError):
        pixel_set[row]


@pytest.mark.parametrize(
    "rows", [slice(2, 9), slice(None, None, -1), [3, 1, 3], np.array([-1, 0]), np.arange(24) % 2 == 0, [True] * 24]
)
def test_slices_masks_and_rows_give_a_smaller_set(pixel_set: CondensedSet, rows: object) -> None:
    scored = replace(pixel_set, scores={"lbpe": np.arange(24, dtype=np.float32)})
    part = scored[rows]  # type: ignore[index]
    expected = np.arange(24)[rows]  # type: ignore[index]
    assert isinstance(part, CondensedSet)
    assert part.origin.tolist() == expected.tolist()
    assert part.scores["lbpe"].tolist() == expected.tolist()
    np.testing.assert_array_equal(part.cells, scored.cells[expected])


def test_an_empty_selection_is_refused(pixel_set: CondensedSet) -> None:
    for rows in (slice(3, 3), np.zeros(24, bool), np.array([], np.int64), []):
        with pytest.raises(BadOption, match="`rows` select none of the 24 patches"):
            pixel_set[rows]


@pytest.mark.parametrize("rows", ["ant", 1.0, True, (0, 1, 2.5), None, np.zeros((2, 2), int)])
def test_other_indices_are_type_errors(pixel_set: CondensedSet, rows: object) -> None:
    with pytest.raises(TypeError, match="indexed by an integer, a slice, a boolean mask or rows"):
        pixel_set[rows]  # type: ignore[index]


def test_a_mask_of_another_length_is_an_index_error(pixel_set: CondensedSet) -> None:
    with pytest.raises(IndexError):
        pixel_set[np.ones(23, bool)]


def test_iteration_yields_every_patch_in_order(rng: np.random.Generator) -> None:
    count = CHUNK + 3
    cells = rng.integers(0, 256, (count, 1, 2, 2), dtype=np.uint8)
    data = CondensedSet(cells, np.arange(count) % 2, ("a", "b"), (4, 4), 2, GREY, np.arange(count))
    patches = list(data)
    assert [patch.label for patch in patches] == data.labels.tolist()
    np.testing.assert_array_equal(np.stack([image for image, _ in patches]), data.patches())


def test_its_repr_fits_a_line(pixel_set: CondensedSet) -> None:
    assert repr(pixel_set) == "<CondensedSet tiny: 24 patches 3×8×8, factor 2, 3 classes>"
    long = repr(replace(pixel_set, name="n" * 300, ranking=Ranking("lbpe")))
    assert long.endswith("ranked by lbpe>")
    assert len(long) <= 120


def test_rows_out_of_order_are_not_ranked_and_a_part_does_not_claim_the_accuracy_of_the_whole() -> None:
    ranked = load("cifar10-idc-ipc10")
    assert "accuracy" in ranked.provenance
    assert ranked[:].ranking == ranked.ranking
    first = ranked[:40]
    assert first.ranking == ranked.ranking
    assert "accuracy" not in first.provenance
    assert first.provenance["kept"] == {"of": 400}
    assert ranked[::-1].ranking is None
    assert ranked[[3, 1]].ranking is None
    assert ranked[np.arange(400) < 3].ranking == ranked.ranking
    with pytest.raises(BadOption, match="select none"):
        ranked[[]]


def test_tensors_in_memory_become_a_set(pixel_set: CondensedSet) -> None:
    mosaics, labels = pixel_set.mosaics()
    tensors = torch.from_numpy(mosaics), torch.from_numpy(labels)
    made = CondensedSet.from_mosaics(*tensors, factor=2, space=pixel_set.space, classes=pixel_set.classes)
    again = CondensedSet.from_mosaics(mosaics, labels, factor=2, space=pixel_set.space, classes=pixel_set.classes)
    np.testing.assert_array_equal(made.cells, again.cells)
    np.testing.assert_array_equal(made.labels, again.labels)


def test_subsets_are_told_apart_by_name_and_resizing_twice_names_as_resizing_once(pixel_set: CondensedSet) -> None:
    ranked = replace(pixel_set, ranking=Ranking("lbpe"))
    assert ranked[:24].name == "tiny"
    assert ranked[:12].name == "tiny-12of24"
    assert ranked[:12][:6].name == ranked[:6].name == "tiny-6of24"
    hard = replace(pixel_set, ranking=Ranking("el2n", "hard", balanced=False))
    assert hard[:12][:6].name == hard[:6].name == "tiny-el2n-hard-unbalanced-6of24"
