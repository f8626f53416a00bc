"""Parquet files as Hugging Face writes them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.open import open_source
from condense_once.data.parquet import ParquetImages, load_parquet
from condense_once.errors import BadFile, BadOption, MissingExtra

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
PIXELS = np.random.default_rng(0).integers(0, 256, (20, 6, 6, 3), dtype=np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def write(
    path: Path, rows: slice = slice(None), names: list[str] | None = None, image_column: str = "image", **columns: Any
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pictures = [{"bytes": png(one), "path": None} for one in PIXELS[rows]]
    labels = (np.arange(len(PIXELS)) % 2)[rows]
    table = {image_column: pa.array(pictures, IMAGE), "label": pa.array(labels)} | columns
    features = {image_column: {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})} if names else None
    pq.write_table(pa.table(table).replace_schema_metadata(metadata), path, row_group_size=7)
    return path


def nchw(rows: slice) -> NDArray[np.uint8]:
    return PIXELS[rows].transpose(0, 3, 1, 2)


def test_a_folder_of_shards_has_train_and_test_with_class_names(tmp_path: Path) -> None:
    for name, rows in (("train-00000-of-00002", slice(8)), ("train-00001-of-00002", slice(8, 15))):
        write(tmp_path / "hub" / "data" / f"{name}.parquet", rows, ["ant", "bee"])
    write(tmp_path / "hub" / "data" / "test-00000-of-00001.parquet", slice(15, 20), ["ant", "bee"])
    source = open_source(tmp_path / "hub")
    assert (source.name, source.classes) == ("hub", ("ant", "bee"))
    assert np.array_equal(source.train.take(slice(None)), nchw(slice(15)))
    assert np.array_equal(source.test.take(slice(None)), nchw(slice(15, 20)))
    assert source.train.labels.tolist() == (np.arange(15) % 2).tolist()


def test_a_single_file_is_a_train_split(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", image_column="img")
    source = open_source(path, size=3, channels=1)
    assert (source.classes, source.train.shape, list(source.splits)) == (("0", "1"), (1, 3, 3), ["train"])


def test_rows_are_read_in_any_order_without_decoding_all(tmp_path: Path) -> None:
    split = load_parquet(write(tmp_path / "a.parquet")).train
    rows = np.array([19, 3, 3, 0, 8, 7])
    assert np.array_equal(replace(split, decoded=None).take(rows), nchw(slice(None))[rows])  # type: ignore[type-var]


def test_a_file_with_fewer_rows_than_it_says_is_damaged(tmp_path: Path) -> None:
    images = ParquetImages(((write(tmp_path / "a.parquet"), "image.bytes", len(PIXELS) + 1),))
    with pytest.raises(BadFile, match=r"a\.parquet is damaged: it ends before its row 20"):
        list(images.read(np.arange(len(images))))


def test_labels_may_be_names(tmp_path: Path) -> None:
    names = pa.array(["dog", "cat"] * 10)
    source = open_source(write(tmp_path / "a.parquet", label=names))
    assert source.classes == ("cat", "dog")
    assert source.train.labels[:3].tolist() == [1, 0, 1]


def test_our_own_export_is_a_source(tmp_path: Path, pixel_set: Any) -> None:
    from condense_once.condensed.exporters import export_set

    export_set(pixel_set, tmp_path / "a.parquet", "parquet")
    source = open_source(tmp_path / "a.parquet")
    assert source.classes == pixel_set.classes
    assert np.array_equal(source.train.labels, pixel_set.labels)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"image": pa.array(["a.png"] * 20)}, "has the type string, not images as {bytes, path}"),
        ({"image": pa.array([{"bytes": None, "path": "a.png"}] * 20, IMAGE)}, "has no image of its own; embed"),
        ({"image": pa.array([{"bytes": b"no", "path": None}] * 20, IMAGE)}, "row 0 of .* is not one of PNG"),
        ({"label": pa.array([0.5] * 20)}, "must be all names or all numbers"),
        ({"label": pa.array([-1] * 20)}, "must be all names or all numbers"),
        ({"label": pa.array([None] * 20)}, "must be all names or all numbers"),
    ],
    ids=range(6),
)
def test_wrong_columns_are_named(tmp_path: Path, columns: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint):
        open_source(write(tmp_path / "a.parquet", **columns))


def test_columns_under_other_names_are_listed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"], "score": [1]}), tmp_path / "a.parquet")
    with pytest.raises(BadFile, match=r"no column of images called image or img .*only 'text', 'score'; rename one"):
        open_source(tmp_path / "a.parquet")


def test_shards_of_two_datasets_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "train-0.parquet", names=["ant", "bee"])
    write(tmp_path / "test-0.parquet", names=["bee", "ant"])
    with pytest.raises(BadFile, match="other class names than the files before it"):
        open_source(tmp_path)


def test_images_of_several_sizes_need_one(tmp_path: Path) -> None:
    pictures = [{"bytes": png(np.zeros((side, side, 3), np.uint8)), "path": None} for side in [6] * 19 + [7]]
    path = write(tmp_path / "a.parquet", image=pa.array(pictures, IMAGE))
    with pytest.raises(BadOption, match=r"differ in size .* pass `size`"):
        open_source(path)
    assert open_source(path, size=4).train.shape == (3, 4, 4)


def test_one_large_value_repeated_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = png(np.zeros((6, 6, 3), np.uint8))
    table = pa.table({"image": pa.array([{"bytes": picture, "path": None}] * 5000, IMAGE), "label": [0] * 5000})
    pq.write_table(table, tmp_path / "a.parquet")
    open_source(tmp_path / "a.parquet")
    monkeypatch.setenv("CONDENSE_ONCE_MAX_MEMORY", "100kB")
    with pytest.raises(BadFile, match=r"labels of .* unpacks to"):
        open_source(tmp_path / "a.parquet")


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="extra 'hf'"):
        open_source(path)


@settings(max_examples=60)
@given(data=st.data())
def test_damage_is_an_error_or_a_source(
    tmp_path_factory: pytest.TempPathFactory, damaged: Any, outcome: Any, data: st.DataObject
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "parquet-damaged.parquet", names=["ant", "bee"])
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    outcome(lambda: open_source(path))
