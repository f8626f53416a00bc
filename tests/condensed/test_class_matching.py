from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.class_matching import known_source, match_classes, open_test_source
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.verify import verify
from condense_once.data.catalogue import CIFAR10, MNIST
from condense_once.data.source import SourceInfo
from condense_once.errors import BadOption


def named(data: CondensedSet, *classes: str, **provenance: object) -> CondensedSet:
    return replace(data, classes=classes, provenance=provenance)


def known(*classes: str) -> SourceInfo:
    return SourceInfo("zoo", "animals", classes, (3, 8, 8), (0.5,) * 3, (0.2,) * 3)


@pytest.mark.parametrize(
    ("classes", "source", "expected"),
    [
        (("ant", "bee", "cat"), ("cat", "dog", "ant", "bee"), [2, -1, 0, 1]),
        (("0", "10", "2"), ("0", "2", "10"), [0, 2, 1]),
        (("00", "02", "10"), ("0", "1", "2", "10"), [0, -1, 1, 2]),
        (("1", "0", "2"), ("cat", "dog", "ant"), [1, 0, 2]),
    ],
)
def test_classes_are_matched_by_name_or_number(
    pixel_set: CondensedSet, classes: tuple[str, ...], source: tuple[str, ...], expected: list[int]
) -> None:
    assert match_classes(named(pixel_set, *classes), known(*source)).tolist() == expected


@pytest.mark.parametrize(
    ("classes", "source", "complaint"),
    [
        (("ant", "bee", "cow"), ("ant", "bee", "cat"), "zoo has no class 'cow', which tiny has; pass another `test`"),
        (("ant", "bee", "cow"), ("0", "1", "2"), "of zoo are only numbers, .* pass the known source .* as `like`"),
        (("1", "2", "3"), ("cat", "dog", "ant"), "numbers, but not 0 to 2"),
        (("0", "1", "2"), ("cat", "dog", "ant", "bee"), "no class '0'"),
    ],
)
def test_classes_are_never_matched_by_position(
    pixel_set: CondensedSet, classes: tuple[str, ...], source: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(BadOption, match=complaint):
        match_classes(named(pixel_set, *classes), known(*source))


def test_verify_compares_the_classes_with_those_of_the_source(pixel_set: CondensedSet, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for provenance in ({"source": "cifar10, train split"}, {"imported": {"dataset": "cifar10"}}):
        save(named(pixel_set, "cat", "dog", "lynx", **provenance), path, force=True)
        (finding,) = verify(path)
        assert (finding.level, finding.text[:34]) == ("error", "cifar10 has no class 'lynx', which")
        save(named(pixel_set, "cat", "dog", "frog", **provenance), path, force=True)
        assert verify(path) == []


def test_verify_takes_the_test_source_as_evaluate_does(pixel_set: CondensedSet, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save(named(pixel_set, "cat", "dog", "frog"), path)
    images, labels = np.zeros((20, 8, 8, 3), np.uint8), np.arange(20) % 10
    np.savez(tmp_path / "test.npz", x_test=images, y_test=labels)
    (finding,) = verify(path, tmp_path / "test.npz")
    assert "only numbers" in finding.text
    assert verify(path, tmp_path / "test.npz", like="cifar10") == []
    assert verify(path, "cifar10") == []
    (finding,) = verify(path, "mnist")
    assert finding.text.startswith("The classes of mnist are only numbers")


def test_like_names_the_classes_of_a_path(pixel_set: CondensedSet, tmp_path: Path) -> None:
    np.savez(tmp_path / "test.npz", x_test=np.zeros((10, 8, 8, 3), np.uint8), y_test=np.arange(10))
    assert open_test_source(pixel_set, tmp_path / "test.npz", like="cifar10").classes == CIFAR10.classes


def test_an_imported_set_is_tested_on_its_dataset(pixel_set: CondensedSet) -> None:
    digits = named(pixel_set, "0", "1", "2", imported={"dataset": "mnist"})
    assert known_source(digits) is MNIST
    assert known_source(named(pixel_set, "0", "1", "2")) is None
