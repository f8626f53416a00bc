from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condense_once.data import zca_store
from condense_once.data.source import ArraySplit, Source
from condense_once.data.zca import Zca, fit_zca
from condense_once.data.zca_store import find_zca, kept_zca, zca_path

KIP = {"recipe": "kip", "regularisation": 0.1}


@pytest.fixture
def fit(source: Source, tmp_path: Path) -> Callable[..., Zca]:
    def kept(description: dict[str, Any] = KIP, split: ArraySplit | None = None) -> Zca:
        return kept_zca(split or source.train, source.mean, source.std, description, data_dir=tmp_path)

    return kept


@pytest.mark.parametrize("method", ["kip", "kornia", "rfad"])
def test_a_kept_fit_is_that_of_fitting_again(
    source: Source, fit: Callable[..., Zca], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = {"recipe": method, "regularisation": 0.1}
    first = fit(description)
    monkeypatch.setattr(zca_store, "fit_spectrum", lambda *_: pytest.fail("fitted again"))
    for strength in (0.1, 0.5):  # one spectrum serves every regularisation
        again = fit({**description, "regularisation": strength})
        fresh = fit_zca(source.train, source.mean, source.std, {**description, "regularisation": strength})
        for name in ("mean", "std", "centre", "matrix", "inverse"):
            np.testing.assert_array_equal(getattr(again, name), getattr(fresh, name))
    np.testing.assert_array_equal(first.matrix, fit(description).matrix)


def test_other_images_or_another_method_have_a_fit_of_their_own(
    source: Source, fit: Callable[..., Zca], tmp_path: Path
) -> None:
    split = source.train
    assert isinstance(split, ArraySplit)
    changed = split.images.copy()
    changed[-1, -1, -1, -1] ^= 1
    fit()
    fit(split=replace(split, images=changed))
    fit({**KIP, "recipe": "kornia"})
    assert len(list((tmp_path / "zca").iterdir())) == 3


def test_a_damaged_file_is_fitted_again(source: Source, fit: Callable[..., Zca], tmp_path: Path) -> None:
    expected = fit().matrix
    path = zca_path(source.train, source.mean, source.std, KIP, tmp_path)
    whole = path.read_bytes()
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[: len(whole) // 2], b""):
        path.write_bytes(damaged)
        zca_store.read_spectrum.cache_clear()
        assert find_zca(source.train, source.mean, source.std, KIP, data_dir=tmp_path) is None
        np.testing.assert_array_equal(fit().matrix, expected)
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_to_is_no_obstacle(
    source: Source, fit: Callable[..., Zca], tmp_path: Path
) -> None:
    (tmp_path / "zca").write_text("not a folder")
    expected = fit_zca(source.train, source.mean, source.std, KIP).matrix
    np.testing.assert_array_equal(fit().matrix, expected)


def test_whitened_images_come_back(source: Source, fit: Callable[..., Zca]) -> None:
    pixels = source.train.take(slice(0, 5)).astype(np.float32) / 255
    zca = fit({"recipe": "kornia", "regularisation": 0.1})
    np.testing.assert_allclose(zca.undo(zca.apply(pixels)), pixels, atol=1e-4)
