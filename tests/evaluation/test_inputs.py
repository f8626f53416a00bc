from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import SOURCES, ArraySplit, Source, SourceInfo
from condense_once.data.whitening import fit_whitening
from condense_once.errors import BadOption
from condense_once.evaluation.inputs import test_inputs as inputs_for_test
from condense_once.evaluation.inputs import training_inputs


@pytest.fixture
def source(rng: np.random.Generator) -> Source:
    split = ArraySplit(rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8), np.arange(12) % 4)
    return Source("zoo", ("cat", "dog", "ant", "bee"), (0.5,) * 3, (0.25,) * 3, {"train": split, "test": split})


def test_test_images_are_in_the_space_of_the_set_and_labels_in_its_numbering(
    pixel_set: CondensedSet, source: Source
) -> None:
    images, labels = inputs_for_test(pixel_set, source)
    keep = source.test.labels != 1  # the set has no dogs
    mean, std = (np.reshape(numbers, (3, 1, 1)) for numbers in (pixel_set.space.mean, pixel_set.space.std))
    np.testing.assert_allclose(images, (source.test.take(keep) / 255 - mean) / std, atol=1e-5)
    names = [pixel_set.classes[label] for label in labels]
    assert names == [source.classes[label] for label in source.test.labels[keep]]


def test_a_normalised_set_gets_the_same_test_images_as_a_pixel_set(pixel_set: CondensedSet, source: Source) -> None:
    space = Space("normalised", pixel_set.space.mean, pixel_set.space.std)
    normalised = replace(pixel_set, cells=space.from_pixels(pixel_set.cells.astype(np.float32) / 255), space=space)
    for one, other in zip(inputs_for_test(pixel_set, source), inputs_for_test(normalised, source), strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(training_inputs(normalised), training_inputs(pixel_set), atol=1e-5, rtol=1e-5)


def test_a_whitened_set_gets_whitened_test_images(pixel_set: CondensedSet, source: Source) -> None:
    zca = {"recipe": "kornia", "regularisation": 0.1, "source": "zoo-of-a-test"}
    info = SourceInfo(
        "zoo-of-a-test", "animals", source.classes, (3, 8, 8), source.mean, source.std, load=lambda: source
    )
    SOURCES.add(info)
    space = Space("zca", pixel_set.space.mean, pixel_set.space.std, zca)
    whitened = replace(pixel_set, cells=pixel_set.cells.astype(np.float32), space=space)
    images, _ = inputs_for_test(whitened, source)
    photographs = source.test.take(source.test.labels != 1).astype(np.float32) / 255
    expected = fit_whitening(source.train, space.mean, space.std, zca).apply(photographs)
    np.testing.assert_allclose(images, expected, atol=1e-4)


def test_normalising_twice_happens_only_where_a_protocol_wants_it(
    pixel_set: CondensedSet, soft_set: CondensedSet
) -> None:
    assert torch.equal(training_inputs(pixel_set, normalise_again=True), training_inputs(pixel_set))
    twice = (training_inputs(soft_set) - 0.3) / 0.4
    torch.testing.assert_close(training_inputs(soft_set, normalise_again=True), twice)


def test_classes_that_nobody_tests_are_refused(pixel_set: CondensedSet, source: Source) -> None:
    with pytest.raises(BadOption, match="no test images of 'cow'"):
        inputs_for_test(replace(pixel_set, classes=("ant", "bee", "cow")), source)


def test_sets_without_class_names_go_by_number(pixel_set: CondensedSet, source: Source) -> None:
    _, labels = inputs_for_test(replace(pixel_set, classes=tuple("0123")), source)
    np.testing.assert_array_equal(labels, source.test.labels)


def test_numbers_that_are_names_go_by_name(pixel_set: CondensedSet, source: Source) -> None:
    backwards = replace(source, classes=tuple("3210"))
    _, labels = inputs_for_test(replace(pixel_set, classes=tuple("0123")), backwards)
    np.testing.assert_array_equal(labels, 3 - source.test.labels)


def test_images_of_another_size_are_refused(soft_set: CondensedSet, source: Source) -> None:
    with pytest.raises(BadOption, match="1×6×6"):
        inputs_for_test(soft_set, source)
