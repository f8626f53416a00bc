from __future__ import annotations

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from condense_once.data.catalogue import FASHION_MNIST
from condense_once.data.idx import is_idx, load_idx
from condense_once.errors import BadFile

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def idx(array: NDArray[np.uint8]) -> bytes:
    return struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


def pictures(count: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, 4, 5), dtype=np.uint8)


def write(folder: Path, suffix: str = "", pack: Callable[[bytes], bytes] = bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, count in (("train", 6), ("t10k", 3)):
        (folder / f"{prefix}-images-idx3-ubyte{suffix}").write_bytes(pack(idx(pictures(count))))
        (folder / f"{prefix}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx(np.arange(count, dtype=np.uint8) % 3)))
    return folder


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_reads_both_splits(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    source = load_idx(write(tmp_path / "digits", suffix, pack))
    assert (source.name, source.classes) == ("digits", ("0", "1", "2"))
    assert np.array_equal(source.train.take(slice(None))[:, 0], pictures(6))
    assert source.train.shape == (1, 4, 5)
    assert source.test.labels.tolist() == [0, 1, 2]
    assert source.mean == pytest.approx([pictures(6).mean() / 255])
    assert source.std == pytest.approx([pictures(6).std() / 255])


def test_like_names_the_classes_and_the_normalisation(tmp_path: Path) -> None:
    source = load_idx(write(tmp_path), like=FASHION_MNIST)
    assert (source.classes, source.mean) == (FASHION_MNIST.classes, (0.2861,))


def test_a_split_may_be_absent(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / IMAGES).unlink()
    with pytest.raises(BadFile, match="lacks the images of its train split, train-images-idx3-ubyte"):
        load_idx(tmp_path)
    (tmp_path / LABELS).unlink()
    assert list(load_idx(tmp_path).splits) == ["test"]


def test_names_with_a_dot_are_known_too(tmp_path: Path) -> None:
    (tmp_path / "t10k-images.idx3-ubyte").write_bytes(idx(pictures(1)))
    (tmp_path / "t10k-labels.idx1-ubyte").write_bytes(idx(np.zeros(1, np.uint8)))
    assert is_idx(tmp_path)
    assert len(load_idx(tmp_path).test.labels) == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"\0\0\x08", "damaged"),
        (idx(np.zeros(60, np.uint8)), "3 dimensions"),
        (idx(pictures(6))[:-1], "fewer bytes"),
        (idx(pictures(6)) + b"x", "more bytes"),
        (idx(pictures(5)), "5 images need as many labels"),
        (idx(pictures(0)), "is empty"),
        (struct.pack(">4I", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1), "fewer bytes"),
        (b"\0\0\x0d\x03" + idx(pictures(6))[4:], "not an idx file of bytes"),
    ],
    ids=range(9),
)
def test_wrong_files_are_named(tmp_path: Path, content: bytes, complaint: str) -> None:
    (write(tmp_path) / IMAGES).write_bytes(content)
    with pytest.raises(BadFile, match=complaint):
        load_idx(tmp_path)


def test_labels_with_gaps_need_names(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / LABELS).write_bytes(idx(np.array([0, 1, 2, 0, 1, 9], np.uint8)))
    with pytest.raises(BadFile, match="from 0 without gaps"):
        load_idx(tmp_path)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2**31, 2**31, 2**31)])
def test_a_gzip_bomb_does_not_fill_memory(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    write(tmp_path, ".gz", gzip.compress)
    bomb = struct.pack(">4I", 0x803, *shape) + bytes(50_000_000)
    (tmp_path / f"{IMAGES}.gz").write_bytes(gzip.compress(bomb, 1))
    del bomb
    tracemalloc.start()
    with pytest.raises(BadFile, match="bytes than its header states"):
        load_idx(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


@settings(max_examples=60)
@given(data=st.data())
def test_damage_is_an_error_or_still_a_source(
    tmp_path_factory: pytest.TempPathFactory, damaged, outcome, data: st.DataObject
) -> None:
    folder = write(tmp_path_factory.getbasetemp() / "idx-damaged")
    path = folder / data.draw(st.sampled_from([IMAGES, LABELS]))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    outcome(lambda: load_idx(folder))


@settings(max_examples=60)
@given(data=st.data())
def test_damage_to_a_gzip_is_an_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, damaged, outcome, same, data: st.DataObject
) -> None:
    folder = write(tmp_path_factory.getbasetemp() / "idx-gz-damaged", ".gz", gzip.compress)
    whole = load_idx(folder)
    path = folder / data.draw(st.sampled_from([f"{IMAGES}.gz", f"{LABELS}.gz"]))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    source = outcome(lambda: load_idx(folder))
    assert source is None or same(source, whole)


def test_a_gzip_may_not_unpack_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = struct.pack(">4I", 0x803, 1000, 28, 28) + bytes(1000 * 28 * 28)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 1000) + bytes(1000))
    load_idx(tmp_path)
    monkeypatch.setattr("condense_once.data.limits.FREE_BYTES", 1000)
    with pytest.raises(BadFile, match=r"unpacks to 765\.6 KiB, more than the"):
        load_idx(tmp_path)
