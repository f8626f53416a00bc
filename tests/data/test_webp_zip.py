from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from condense_once.data import safe_zip, webp_zip
from condense_once.data.catalogue import CIFAR100
from condense_once.data.safe_zip import open_zip, read_member
from condense_once.data.source import ArraySplit, Source
from condense_once.data.webp_zip import load_webp_zip, save_webp_zip
from condense_once.errors import BadFile, BadOption


def source(channels: int = 3, side: int = 4, train: int = 5, test: int = 2) -> Source:
    rng = np.random.default_rng(0)
    sizes = {"train": train, "test": test}
    splits = {
        name: ArraySplit(rng.integers(0, 256, (count, channels, side, side), dtype=np.uint8), np.arange(count) % 2)
        for name, count in sizes.items()
        if count
    }
    return Source("pairs", ("left", "right"), (0.5,) * channels, (0.5,) * channels, splits)  # type: ignore[arg-type]


def png(image: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


def npy(array: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def write(path: Path, **changes: bytes | None) -> Path:
    members = {
        "train_000.png": png(np.zeros((8, 4, 3), np.uint8)),
        "train_001.png": png(np.full((4, 4, 3), 9, np.uint8)),
        "train_labels.npy": npy(np.array([0, 1, 1])),
        "classes.json": json.dumps(["left", "right"]).encode(),
    } | {name.replace("__", "."): content for name, content in changes.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return path


@pytest.mark.parametrize("made", [source(), source(1), source(test=0), source(train=0), source(side=5, train=12)])
def test_images_survive_exactly(
    tmp_path: Path, made: Source, same: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webp_zip, "MAX_HEIGHT", 11)  # two images per stack
    save_webp_zip(made, tmp_path / "pairs.zip")
    back = load_webp_zip(tmp_path / "pairs.zip")
    assert same(made, back)
    assert back.name == "pairs"
    with zipfile.ZipFile(tmp_path / "pairs.zip") as archive:
        assert ("train_002" in str(archive.namelist())) == ("train" in made.splits)


def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        save_webp_zip(source(), tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_stacks_are_sorted_by_number(tmp_path: Path) -> None:
    ninth = {f"train_{number}__png": png(np.full((4, 4, 3), number % 256, np.uint8)) for number in (1000, 999)}
    labels = {"train_labels__npy": npy(np.zeros(5, int))}
    images = load_webp_zip(write(tmp_path / "a.zip", **ninth, **labels)).train.take(slice(None))
    assert images[:, 0, 0, 0].tolist() == [0, 0, 9, 999 % 256, 1000 % 256]


def test_only_square_images_are_stacked(tmp_path: Path) -> None:
    wide = Source(
        "wide", ("a",), (0.5,), (0.5,), {"train": ArraySplit(np.zeros((1, 1, 2, 3), np.uint8), np.zeros(1, int))}
    )
    with pytest.raises(BadOption, match="must be square, at most 4096 pixels per side, not 3×2"):
        save_webp_zip(wide, tmp_path / "a.zip")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"classes__json": None}, "lacks classes.json"),
        ({"classes__json": b"[1, 2]"}, "list of strings"),
        ({"classes__json": b"["}, "not valid JSON"),
        ({"classes__json": b"[" * 100_000}, "not valid JSON"),
        ({"classes__json": b'["left"]'}, "only 1 class names"),
        ({"train_labels__npy": None}, "lacks the labels of its train split"),
        ({"train_labels__npy": npy(np.array([0, 1]))}, "more images than labels"),
        ({"train_labels__npy": npy(np.array([0, 1, 1, 0]))}, "3 images need as many labels"),
        ({"train_labels__npy": npy(np.array([None]))}, "not an array of numbers"),
        ({"test_labels__npy": npy(np.array([0]))}, "lacks the images of its test split"),
        ({"train_001__png": None}, "2 images need as many labels"),
        ({"train_001__png": png(np.zeros((6, 4, 3), np.uint8))}, "its height a multiple of its width"),
        ({"train_001__png": png(np.zeros((4, 4, 4), np.uint8))}, "8-bit grey or RGB"),
        ({"train_001__png": png(np.zeros((4, 4), np.uint8))}, "differ in width or channels"),
        ({"train_001__png": png(np.zeros((2, 2, 3), np.uint8))}, "differ in width or channels"),
        ({"train_001__png": b"no image"}, r"train_001\.png in .* is not one of PNG, JPEG, WEBP, BMP"),
        ({"train_000__png": None, "train_001__png": None, "train_labels__npy": None}, "a holds no images"),
        ({"../train_002__png": b""}, "does not belong in a zip of stacked images"),
        ({"readme__txt": b"hello"}, "does not belong in a zip of stacked images"),
        ({"train_001__png": png(np.zeros((200_000, 1), np.uint8))}, "more images than labels"),
    ],
    ids=range(20),
)
def test_wrong_content_is_named(tmp_path: Path, changes: dict[str, bytes | None], complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint):
        load_webp_zip(write(tmp_path / "a.zip", **changes))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_member_that_would_fill_memory_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_zip, "MAX_UNPACKED_SMALL", 1 << 30)  # which else refuses the file as a whole
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("train_000.png", "w") as member:
            for _ in range(257):
                member.write(bytes(1 << 20))
        archive.writestr("classes.json", "[]")
    with pytest.raises(BadFile, match=r"train_000\.png in .* is larger than"):
        load_webp_zip(tmp_path / "a.zip")


def test_a_zip_that_is_not_what_its_table_says_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip")
    whole = path.read_bytes()
    at = whole.index(b"classes.json")
    path.write_bytes(whole[:at] + b"klasses" + whole[at + 7 :])
    with pytest.raises(BadFile, match="damaged"):
        load_webp_zip(path)
    at = whole.index(b"PK\1\2") + 32  # the length of the first member's comment, long enough to swallow the next entry
    path.write_bytes(whole[:at] + struct.pack("<H", 46 + len("train_001.png")) + whole[at + 2 :])
    assert len(zipfile.ZipFile(path).namelist()) == 3
    with pytest.raises(BadFile, match="missing from its directory"):
        load_webp_zip(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("train_000.png", b"0" * 100)
    with pytest.raises(BadFile, match="neither stored nor deflated"):
        load_webp_zip(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("classes.json", b"[]")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("classes.json", b"[]")
    with pytest.raises(BadFile, match="two members of the same name"):
        load_webp_zip(path)


def table_field(whole: bytes, name: bytes, offset: int) -> int:
    """Where a field of a member's entry in the table at the end stands."""
    return whole.rindex(name) - 46 + offset


@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_that_claims_more_than_can_be_packed_is_not_read(tmp_path: Path, packed: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", packed) as archive:
        archive.writestr("classes.json", bytes(100_000))
        most = archive.getinfo("classes.json").compress_size * (1032 if packed else 1)
    whole = (tmp_path / "a.zip").read_bytes()
    at = table_field(whole, b"classes.json", 24)
    assert struct.unpack_from("<I", whole, at) == (100_000,)
    (tmp_path / "a.zip").write_bytes(whole[:at] + struct.pack("<I", most + 1) + whole[at + 4 :])
    with pytest.raises(BadFile, match=r"classes\.json in .* declares more bytes than its data can hold"):
        load_webp_zip(tmp_path / "a.zip")


def test_members_that_claim_more_than_there_is_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip")
    whole = path.read_bytes()
    at = table_field(whole, b"train_labels.npy", 20)
    path.write_bytes(whole[:at] + struct.pack("<I", len(whole)) + whole[at + 4 :])
    with pytest.raises(BadFile, match="declare more bytes than it has"):
        load_webp_zip(path)


def test_no_more_is_unpacked_than_the_table_says(tmp_path: Path) -> None:
    """A member that says it is short and goes on for ever must not be unpacked first and cut then."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("classes.json", b'["left"]' + bytes(64 << 20))
    whole = path.read_bytes()
    at = table_field(whole, b"classes.json", 16)
    claim = struct.pack("<I", zlib.crc32(b'["left"]')) + whole[at + 4 : at + 8] + struct.pack("<I", 8)
    path.write_bytes(whole[:at] + claim + whole[at + 12 :])
    with open_zip(path) as archive:
        tracemalloc.start()
        assert read_member(archive, "classes.json") == b'["left"]'
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 << 20


def test_a_machine_with_too_little_memory_is_not_taken_for_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip")
    with pytest.raises(MemoryError), open_zip(path):
        raise MemoryError
    with pytest.raises(BadFile, match="damaged"), open_zip(path):
        raise EOFError


def test_cifar100_is_read_whole(shared_data: Path) -> None:
    cifar = load_webp_zip(shared_data / "cifar100.zip")
    assert (cifar.name, cifar.classes, cifar.mean) == ("cifar100", CIFAR100.classes, CIFAR100.mean)
    assert np.bincount(cifar.train.labels).tolist() == [500] * 100
    assert np.bincount(cifar.test.labels).tolist() == [100] * 100
    assert cifar.train.shape == (3, 32, 32)


@settings(max_examples=80)
@given(data=st.data())
def test_damage_is_an_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, damaged, outcome, same, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "webp-damaged.zip"
    save_webp_zip(source(), path, force=True)
    whole = load_webp_zip(path)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    read = outcome(lambda: load_webp_zip(path))
    assert read is None or same(read, whole)


def test_a_few_kilobytes_may_not_hold_very_many_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blank = np.zeros((500, 3, 8, 8), np.uint8)
    source = Source("a", ("left",), (0.5,) * 3, (0.5,) * 3, {"train": ArraySplit(blank, np.zeros(500, np.int64))})
    save_webp_zip(source, tmp_path / "a.zip")
    load_webp_zip(tmp_path / "a.zip")
    monkeypatch.setenv("CONDENSE_ONCE_MAX_MEMORY", "50kB")
    with pytest.raises(BadFile, match=r"train split of .* unpacks to 93\.8 KiB, more than the 48\.8 KiB"):
        load_webp_zip(tmp_path / "a.zip")
