"""Shards as webdataset writes them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.open import open_source
from condense_once.errors import BadFile

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 6, 6, 3), dtype=np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def write(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def samples(rows: range, kind: str = "cls") -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    for row in rows:
        label = b"%d" % (row % 2) if kind == "cls" else json.dumps({"label": row % 2, "url": "x"}).encode()
        members |= {f"s{row:04d}.png": png(PIXELS[row]), f"s{row:04d}.{kind}": label}
    return members


def nchw(rows: slice) -> NDArray[np.uint8]:
    return PIXELS[rows].transpose(0, 3, 1, 2)


def test_folders_of_shards_are_splits_and_a_file_names_the_classes(tmp_path: Path) -> None:
    write(tmp_path / "wds" / "train" / "0.tar", samples(range(3)))
    write(tmp_path / "wds" / "train" / "1.tar", samples(range(3, 6)))
    write(tmp_path / "wds" / "test" / "0.tar", samples(range(6, 8)))
    (tmp_path / "wds" / "classnames.txt").write_text("ant\nbee\n")
    source = open_source(tmp_path / "wds")
    assert (source.name, source.classes) == ("wds", ("ant", "bee"))
    assert np.array_equal(source.train.take(slice(None)), nchw(slice(6)))
    assert np.array_equal(source.test.take(slice(None)), nchw(slice(6, 8)))
    assert source.train.labels.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("kind", ["cls", "json"])
def test_one_shard_is_a_train_split(tmp_path: Path, kind: str) -> None:
    source = open_source(write(tmp_path / "shard-000.tar", samples(range(8), kind)), size=3)
    assert (source.classes, source.train.shape) == (("0", "1"), (3, 3, 3))
    assert source.train.labels.tolist() == [0, 1] * 4


def compress(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed


def test_compressed_shards_are_read_like_plain_ones_and_beside_them(tmp_path: Path) -> None:
    write(tmp_path / "wds" / "0.tar", samples(range(4)))
    packed = compress(write(tmp_path / "wds" / "1.tar", samples(range(4, 8))))
    both, one = open_source(tmp_path / "wds"), open_source(packed)
    assert one.name == "1"
    assert np.array_equal(both.train.take(slice(None)), nchw(slice(8)))
    assert np.array_equal(one.train.take(slice(None)), nchw(slice(4, 8)))


def test_a_compressed_archive_of_something_else_is_no_shard(tmp_path: Path) -> None:
    write(tmp_path / "wds" / "0.tar", samples(range(4)))
    compress(write(tmp_path / "wds" / "notes.tar", {"notes.txt": b"x"}))
    assert len(open_source(tmp_path / "wds").train.labels) == 4
    with pytest.raises(BadFile, match="holds neither cifar-10-batches-py"):
        open_source(tmp_path / "wds" / "notes.tar.gz")


def test_many_compressed_shards_take_no_more_memory_than_one_of_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(4):
        compress(
            write(tmp_path / "wds" / f"{at}.tar", {f"{at}.png": png(PIXELS[at]) + bytes(20_000), f"{at}.cls": b"0"})
        )
    monkeypatch.setenv("CONDENSE_ONCE_MAX_MEMORY", "60KB")
    assert len(open_source(tmp_path / "wds" / "0.tar.gz").train.labels) == 1
    with pytest.raises(BadFile, match="CONDENSE_ONCE_MAX_MEMORY"):
        open_source(tmp_path / "wds")


def test_labels_may_be_names(tmp_path: Path) -> None:
    members = {"a.png": png(PIXELS[0]), "a.cls": b"dog", "b.png": png(PIXELS[1]), "b.cls": b"cat"}
    assert open_source(write(tmp_path / "a.tar", members)).classes == ("cat", "dog")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"s0001.cls": b""}, "no label for 's0001'"),
        ({"s0009.png": png(PIXELS[0])}, "no label for 's0009'"),
        ({"s0001.jpg": b""}, "two images called 's0001'"),
        ({"s0001.png": b"no"}, r"s0001\.png in .* is not one of PNG"),
        ({"s0001.cls": b"cat"}, "must be all names or all numbers"),
        ({"s0001.cls": bytes(1 << 17)}, "too many for a label"),
        ({"s0009.png": png(PIXELS[0]), "s0009.json": b"{"}, "not valid JSON"),
        ({"../s0001.png": b""}, "outside its own folder"),
    ],
    ids=range(8),
)
def test_wrong_content_is_named(tmp_path: Path, change: dict[str, bytes], complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint):
        open_source(write(tmp_path / "a.tar", samples(range(3)) | change))


def test_a_cifar_tar_is_no_webdataset(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cifar-10-batches-py"):
        open_source(write(tmp_path / "a.tar", {"cifar-10-batches-py/readme.html": b"x"}))


@settings(max_examples=60)
@given(data=st.data())
def test_damage_is_an_error_or_a_source(
    tmp_path_factory: pytest.TempPathFactory, damaged: Any, outcome: Any, data: st.DataObject
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "wds-damaged.tar", samples(range(4)))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    outcome(lambda: open_source(path))
