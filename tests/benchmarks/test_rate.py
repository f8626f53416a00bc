"""The benchmark of accuracy over bytes stores real images as it counts them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from condense_once.data.source import ArraySplit, Source

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def real_images(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return __import__("real_images")


@pytest.fixture
def rate(real_images: ModuleType) -> ModuleType:
    return __import__("rate")


def shades(per_class: int) -> Source:
    """Images of one colour each, by which they are told apart after coding."""
    labels = np.arange(2 * per_class) % 2
    colours = np.random.default_rng(0).permutation(np.linspace(20, 230, len(labels))).astype(np.uint8)
    images = np.broadcast_to(colours[:, None, None, None], (len(labels), 3, 32, 32)).copy()
    return Source("shades", ("even", "odd"), (0.5,) * 3, (0.25,) * 3, {"train": ArraySplit(images, labels)})


@pytest.mark.parametrize("sheet", [True, False])
@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("name", ["webp", "avif", "jpeg"])
def test_stored_images_come_back_in_their_order_with_their_labels(
    real_images: ModuleType, name: str, factor: int, sheet: bool
) -> None:
    source = shades(20)
    storage = real_images.Storage(name, 90, factor, sheet)
    data, size = real_images.RealImages(source).stored(3000, storage, "random")
    assert data.cells.shape[1:] == (3, 32 // factor, 32 // factor)
    assert 0 < size <= 2 * 3000
    for label in range(2):
        mine = data.cells[data.labels == label]
        rows = real_images.RealImages(source).rows("random", label, len(mine))
        assert len(mine) == len(data) // 2
        np.testing.assert_allclose(mine.mean((1, 2, 3)), source.train.take(rows).mean((1, 2, 3)), atol=4)


def test_representatives_are_different_images_of_the_class(
    real_images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_images, "POOL", 20)
    monkeypatch.setattr(real_images, "NET", "convnet-d1-w2")
    source = shades(20)
    rows = real_images.RealImages(source).rows("k-means", 1, 5)
    assert len(set(rows.tolist())) == 5
    assert (source.train.labels[rows] == 1).all()


def test_every_file_and_every_label_counts(real_images: ModuleType) -> None:
    storage = real_images.Storage("webp", 50, 1, False)
    images = shades(3).train.take(slice(0, 6)).transpose(0, 2, 3, 1)
    files = storage.encode(images)
    data, size = real_images.RealImages(shades(3)).stored(len(files[0]) + 1, storage, "random")
    assert (len(data), size) == (2, 2 * (len(files[0]) + 1))


def test_an_image_that_does_not_fit_is_refused(real_images: ModuleType) -> None:
    with pytest.raises(SystemExit, match="Not even one image"):
        real_images.RealImages(shades(3)).stored(20, real_images.Storage("webp", 50, 1, False), "random")


def test_measured_lines_and_published_points_share_a_table_and_a_figure(rate: ModuleType, tmp_path: Path) -> None:
    entry: dict[str, Any] = {"codec": "layered", "std": 0.5, "patches": 400}
    entries = [
        entry | {"set": "sets/mine.safetensors", "bytes": 12_288, "mean": 60.0},
        entry | {"set": "sets/mine.safetensors", "bytes": 3_072, "mean": 50.0, "patches": 40},
        entry | {"set": "random real images", "codec": "AVIF sheet", "bytes": 3_072, "mean": 42.0},
    ]
    text = rate.table(entries)
    assert "| mine, layered | 50.0 ± 0.5 (40) | 60.0 ± 0.5 (400) |" in text
    assert "| random real images, AVIF sheet | 42.0 ± 0.5 (400) | – |" in text
    assert all(point["counts"] and point["method"] in text for point in rate.published())
    pytest.importorskip("matplotlib")
    rate.draw(entries, tmp_path / "rate.png")
    assert (tmp_path / "rate.png").stat().st_size > 10_000
