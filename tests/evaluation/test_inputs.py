from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import SOURCES, ArraySplit, Source, SourceInfo
from condense_once.data.zca import fit_zca
from condense_once.errors import BadOption
from condense_once.evaluation import inputs
from condense_once.evaluation.inputs import prepare_test_images, training_images
from condense_once.train import images as train_images


@pytest.fixture
def source(rng: np.random.Generator) -> Source:
    split = ArraySplit(rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8), np.arange(12) % 4)
    return Source("zoo", ("cat", "dog", "ant", "bee"), (0.5,) * 3, (0.25,) * 3, {"train": split, "test": split})


def test_test_images_are_in_the_space_of_the_set_and_labels_in_its_numbering(
    pixel_set: CondensedSet, source: Source
) -> None:
    images, labels = prepare_test_images(pixel_set, source)
    keep = source.test.labels != 1  # the set has no dogs
    mean, std = (np.reshape(numbers, (3, 1, 1)) for numbers in (pixel_set.space.mean, pixel_set.space.std))
    np.testing.assert_allclose(images[:], (source.test.take(keep) / 255 - mean) / std, atol=1e-5)
    names = [pixel_set.classes[label] for label in labels]
    assert names == [source.classes[label] for label in source.test.labels[keep]]


def test_a_normalised_set_gets_the_same_test_images_as_a_pixel_set(pixel_set: CondensedSet, source: Source) -> None:
    space = Space("normalised", pixel_set.space.mean, pixel_set.space.std)
    normalised = replace(pixel_set, cells=space.from_pixels(pixel_set.cells.astype(np.float32) / 255), space=space)
    for one, other in zip(prepare_test_images(pixel_set, source), prepare_test_images(normalised, source), strict=True):
        torch.testing.assert_close(one[:], other[:])
    torch.testing.assert_close(training_images(normalised)[:], training_images(pixel_set)[:], atol=1e-5, rtol=1e-5)


@pytest.fixture
def whitened(pixel_set: CondensedSet, source: Source) -> Iterator[CondensedSet]:
    """A set whitened by what its own source, known by a name, says."""
    info = SourceInfo(
        "whitened-zoo", "animals", source.classes, (3, 8, 8), source.mean, source.std, load=lambda: source
    )
    zca = {"recipe": "kornia", "regularisation": 0.1, "source": "whitened-zoo"}
    space = Space("zca", pixel_set.space.mean, pixel_set.space.std, zca)
    with SOURCES.registered(info):
        yield replace(pixel_set, cells=pixel_set.cells.astype(np.float32), space=space)
    inputs._fitted.cache_clear()


def test_a_whitened_set_gets_whitened_test_images(whitened: CondensedSet, source: Source) -> None:
    images, _ = prepare_test_images(whitened, source)
    photographs = source.test.take(source.test.labels != 1).astype(np.float32) / 255
    space = whitened.space
    expected = fit_zca(source.train, space.mean, space.std, space.zca).apply(photographs)
    np.testing.assert_allclose(images[:], expected, atol=1e-4)


def test_the_authors_only_normalise_the_test_images_of_a_whitened_set(whitened: CondensedSet, source: Source) -> None:
    images, _ = prepare_test_images(whitened, source, whiten=False)
    mean, std = (np.reshape(numbers, (3, 1, 1)) for numbers in (whitened.space.mean, whitened.space.std))
    np.testing.assert_allclose(images[:], (source.test.take(source.test.labels != 1) / 255 - mean) / std, atol=1e-5)


def test_a_whitening_is_fitted_once(
    whitened: CondensedSet, source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[tuple[str, Path]] = []

    def open_zoo(name: str, *, data_dir: Path) -> Source:
        opened.append((name, data_dir))
        return source

    monkeypatch.setattr(inputs, "open_source", open_zoo)
    for _ in range(3):
        prepare_test_images(whitened, source, data_dir=tmp_path)
    assert opened == [("whitened-zoo", tmp_path)]
    stronger = replace(whitened.space, zca={**whitened.space.zca, "regularisation": 1.0})
    prepare_test_images(replace(whitened, space=stronger), source, data_dir=tmp_path)
    prepare_test_images(whitened, source, data_dir=tmp_path / "elsewhere")
    assert len(opened) == 3


def test_many_test_images_are_read_when_they_are_needed(
    pixel_set: CondensedSet, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, labels = prepare_test_images(pixel_set, source)
    monkeypatch.setattr(
        train_images, "MEMORY_LIMIT", 4 * 3 * 8 * 8 * 8
    )  # bytes of eight images; nine have classes of the set
    taken: list[int] = []

    @dataclass(frozen=True)
    class Counted(ArraySplit):
        def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
            images = super().take(rows)
            taken.append(len(images))
            return images

    split = Counted(source.test.take(slice(None)), source.test.labels)
    read, same = prepare_test_images(pixel_set, replace(source, splits={"test": split}))
    assert torch.equal(labels, same)
    assert not taken
    parts = [read[at : at + 4] for at in range(0, 9, 4)]
    assert taken == [4, 4, 1]
    assert torch.equal(torch.cat(parts), ready[:])


def test_many_patches_that_are_normalised_twice_are_read_when_they_are_needed(
    soft_set: CondensedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = training_images(soft_set, double_normalise=True)
    monkeypatch.setattr(train_images, "MEMORY_LIMIT", 0)
    read = training_images(soft_set, double_normalise=True)
    assert not isinstance(read, torch.Tensor)
    assert torch.equal(read[torch.tensor([3, 0])], twice[torch.tensor([3, 0])])


def test_normalising_twice_happens_only_where_a_protocol_wants_it(
    pixel_set: CondensedSet, soft_set: CondensedSet
) -> None:
    assert torch.equal(training_images(pixel_set, double_normalise=True)[:], training_images(pixel_set)[:])
    twice = (training_images(soft_set)[:] - 0.3) / 0.4
    torch.testing.assert_close(training_images(soft_set, double_normalise=True)[:], twice)


def test_a_class_that_the_source_lacks_is_refused(pixel_set: CondensedSet, source: Source) -> None:
    with pytest.raises(BadOption, match="no class 'cow'"):
        prepare_test_images(replace(pixel_set, classes=("ant", "bee", "cow")), source)


def test_a_source_without_images_of_its_classes_is_refused(pixel_set: CondensedSet, source: Source) -> None:
    dogs = ArraySplit(np.zeros((2, 3, 8, 8), np.uint8), np.array([1, 1]))
    with pytest.raises(BadOption, match="no test images of any class of tiny"):
        prepare_test_images(pixel_set, replace(source, splits={"test": dogs}))


def test_sets_without_class_names_go_by_number(pixel_set: CondensedSet, source: Source) -> None:
    _, labels = prepare_test_images(replace(pixel_set, classes=tuple("0123")), source)
    np.testing.assert_array_equal(labels, source.test.labels)


def test_numbers_that_are_names_go_by_name(pixel_set: CondensedSet, source: Source) -> None:
    backwards = replace(source, classes=tuple("3210"))
    _, labels = prepare_test_images(replace(pixel_set, classes=tuple("0123")), backwards)
    np.testing.assert_array_equal(labels, 3 - source.test.labels)


def test_images_of_another_size_are_refused(soft_set: CondensedSet, source: Source) -> None:
    with pytest.raises(BadOption, match="1×6×6"):
        prepare_test_images(soft_set, source)


@pytest.mark.parametrize("order", [("0", "1", "2"), ("2", "0", "1")])
def test_classes_that_are_numbers_mean_the_classes_of_the_source(
    pixel_set: CondensedSet, source: Source, order: tuple[str, ...]
) -> None:
    three = ArraySplit(source.test.take(slice(None)), source.test.labels % 3)
    source = replace(source, classes=("cat", "dog", "ant"), splits={"test": three})
    _, labels = prepare_test_images(replace(pixel_set, classes=order), source)
    expected = [order.index(str(label)) for label in source.test.labels]
    assert labels.tolist() == expected


def test_classes_that_are_other_numbers_are_refused(pixel_set: CondensedSet, source: Source) -> None:
    three = ArraySplit(source.test.take(slice(None)), source.test.labels % 3)
    source = replace(source, classes=("cat", "dog", "ant"), splits={"test": three})
    with pytest.raises(BadOption, match="numbers, but not 0 to 2, so they cannot be matched"):
        prepare_test_images(replace(pixel_set, classes=("1", "2", "3")), source)


def test_classes_under_ids_of_imagenet_are_those_of_a_source_with_words(pixel_set: CondensedSet) -> None:
    split = ArraySplit(np.zeros((3, 3, 8, 8), np.uint8), np.arange(3))
    source = Source("photos", ("church", "tench", "golf ball"), (0.5,) * 3, (0.25,) * 3, {"test": split})
    older = replace(pixel_set, classes=("n01440764", "n03445777", "n03028079"))
    assert prepare_test_images(older, source)[1].tolist() == [2, 0, 1]
