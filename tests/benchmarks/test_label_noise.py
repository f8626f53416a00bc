"""The benchmark of noise knows which patches it spoiled, also those whose images were spoiled before condensing."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.condensing.originals import original_rows
from condense_once.data.source import ArraySplit, Source

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def label_noise(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return __import__("label_noise")


@pytest.mark.parametrize("kind", ["labels", "images", "none"])
def test_exactly_the_spoiled_patches_of_a_set_differ(
    label_noise: ModuleType, pixel_set: CondensedSet, kind: str
) -> None:
    made, hit = label_noise.spoiled_set(pixel_set, share=0.25, kind=kind, seed=1)
    assert hit.sum() == (0 if kind == "none" else 6)
    np.testing.assert_array_equal(made.labels != pixel_set.labels, hit & (kind == "labels"))
    changed = (made.cells != pixel_set.cells).any(axis=(1, 2, 3))
    np.testing.assert_array_equal(changed, hit & (kind == "images"))
    flat = (data.cells.reshape(len(data), -1) for data in (made, pixel_set))
    np.testing.assert_array_equal(*(np.sort(cells, axis=1) for cells in flat))  # the same pixels, in another order


def test_a_patch_is_spoiled_if_the_image_was_that_it_started_from(
    label_noise: ModuleType, rng: np.random.Generator, tmp_path: Path
) -> None:
    images, labels = rng.integers(0, 256, (300, 3, 8, 8), dtype=np.uint8), np.arange(300) % 3
    clean = Source("shapes", ("a", "b", "c"), (0.5,) * 3, (0.25,) * 3, {"train": ArraySplit(images, labels)})
    source, hit = label_noise.spoiled_source(clean, share=0.3, kind="labels", seed=0)
    np.testing.assert_array_equal(source.train.labels != labels, hit)
    file = tmp_path / "noisy.safetensors"
    made = label_noise.condensed_from(source, file, net="convnet-d1-w8", steps=1, seed=0)
    rows = original_rows(made, source)
    assert 0 < hit[rows].sum() < len(made)
    np.testing.assert_array_equal(hit[rows], made.labels != labels[rows])
    assert label_noise.condensed_from(source, file, net="other", steps=9, seed=9).name == made.name  # the file is kept
