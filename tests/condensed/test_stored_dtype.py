from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.exporters import export_set
from condense_once.condensed.file import save
from condense_once.condensed.importers import import_set
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.stored_dtype import with_dtype
from condense_once.condensed.subset import resize
from condense_once.device import open_set
from condense_once.errors import BadOption


@pytest.fixture
def floats(rng: np.random.Generator, soft_set: CondensedSet) -> CondensedSet:
    """Sixty ranked float32 patches of three classes."""
    cells = (3 * rng.normal(size=(60, 1, 6, 6))).astype(np.float32)
    return CondensedSet(
        cells,
        np.arange(60) % 3,
        soft_set.classes,
        soft_set.size,
        1,
        soft_set.space,
        np.arange(60),
        ranking=Ranking("lbpe"),
        name="floats",
    )


def test_normalised_values_are_rounded_to_half_the_bytes(floats: CondensedSet) -> None:
    half = with_dtype(floats, "float16")
    assert half.cells.dtype == np.float16
    np.testing.assert_allclose(half.patches(), floats.patches(), rtol=1e-3)
    assert with_dtype(half, "float32").cells.dtype == np.float32


@pytest.mark.parametrize(
    ("dtype", "scale", "complaint"),
    [
        ("uint8", 1, "floats holds normalised values, .* pass `dtype` float16"),
        ("float16", 1e6, "which overflow float16; pass `dtype` float32"),
        ("int4", 1, "`dtype` must be one of float32, float16, uint8, not 'int4'"),
    ],
)
def test_what_a_data_type_cannot_hold_is_refused(
    floats: CondensedSet, dtype: str, scale: float, complaint: str
) -> None:
    with pytest.raises(BadOption, match=complaint):
        with_dtype(replace(floats, cells=floats.cells * np.float32(scale)), dtype)  # type: ignore[arg-type]


def test_pixels_stay_in_eight_bits(pixel_set: CondensedSet) -> None:
    assert with_dtype(pixel_set, "uint8") is pixel_set
    with pytest.raises(BadOption, match="tiny holds pixels, which are stored in 8 bits"):
        with_dtype(pixel_set, "float16")


def test_a_file_in_half_precision_is_read_everywhere(floats: CondensedSet, tmp_path: Path) -> None:
    save(with_dtype(floats, "float16"), tmp_path / "half.safetensors")
    small = open_set(tmp_path / "half.safetensors").take(total=6)
    np.testing.assert_allclose(small.patches, floats[:6].patches(), rtol=1e-3)
    assert resize(tmp_path / "half.safetensors", total=6).cells.dtype == np.float16


def test_twice_as_much_fits_in_half_the_precision_and_never_more_than_allowed(
    floats: CondensedSet, tmp_path: Path
) -> None:
    for limit in range(3000, 9000, 97):
        whole, half = resize(floats, bytes=limit), resize(floats, bytes=limit, dtype="float16")
        assert len(half) >= len(whole)
        save(half, tmp_path / "half.safetensors", force=True)
        assert (tmp_path / "half.safetensors").stat().st_size <= limit
    assert len(resize(floats, bytes=5000, dtype="float16")) > 1.4 * len(resize(floats, bytes=5000))


def test_too_few_bytes_for_floats_are_refused_with_what_half_precision_would_take(
    floats: CondensedSet, tmp_path: Path
) -> None:
    with pytest.raises(
        BadOption, match=r"raise `bytes` to that, or pass `dtype` float16 \(([\d,]+) bytes\)"
    ) as refused:
        resize(floats, bytes=1000)
    needed = int(str(refused.value).partition("float16 (")[2].partition(" ")[0].replace(",", ""))
    save(resize(floats, bytes=needed, dtype="float16"), tmp_path / "half.safetensors")
    assert (tmp_path / "half.safetensors").stat().st_size <= needed
    with pytest.raises(BadOption, match=r"raise `bytes` to that\.$"):
        resize(floats, bytes=1000, dtype="float16")


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_npz_files_hold_the_data_type_asked_for_and_are_read_again(dtype: str, tmp_path: Path) -> None:
    data = load("cifar10-real-ipc10", first=20)
    export_set(data, tmp_path / "x.npz", dtype=dtype)  # type: ignore[arg-type]
    assert np.load(tmp_path / "x.npz")["images"].dtype == dtype
    again = import_set(tmp_path / "x.npz")
    read = again[0] if isinstance(again, tuple) else again
    assert np.abs(read.patches() - data.patches()).max() < 0.003


def test_formats_of_one_data_type_and_floats_in_eight_bits_are_refused(floats: CondensedSet, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="`dtype` of the format folder is fixed; leave it out"):
        export_set(floats, tmp_path / "folder", "folder", dtype="float16")
    with pytest.raises(BadOption, match="floats holds normalised values"):
        export_set(floats, tmp_path / "x.npz", dtype="uint8")
