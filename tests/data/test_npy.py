from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from condense_once.data.npy import as_labels, map_npy, read_npy, read_npz
from condense_once.errors import BadFile


def read(content: bytes) -> NDArray[Any]:
    return read_npy(io.BytesIO(content), len(content), "it")


def written(array: NDArray[Any], version: tuple[int, int] | None = None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version)
    return out.getvalue()


def with_header(header: str, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=">i4").reshape(2, 3, 4),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(7, np.uint8),
        np.array(["cat", "dog"]),
        np.array([b"cat"]),
        np.array([True, False]),
        np.zeros((0, 3), np.float16),
    ],
    ids=range(7),
)
def test_arrays_are_read_as_numpy_reads_them(array: NDArray[Any], version: tuple[int, int], tmp_path: Path) -> None:
    content = written(array, version)
    again = read(content)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(again, np.load(io.BytesIO(content)))
    if array.size:
        (tmp_path / "a.npy").write_bytes(content)
        np.testing.assert_array_equal(map_npy(tmp_path / "a.npy"), array)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (written(np.array([{"a": 1}], object)), "holds object .* not an array of numbers or strings"),
        (written(np.zeros(2, [("a", "i4"), ("b", "f4")])), "not an array of numbers or strings"),
        (written(np.zeros(2, "m8[s]")), "not an array of numbers or strings"),
        (written(np.zeros(2, "c8")), "not an array of numbers or strings"),
        (with_header("{'descr': ('<i4', (2,)), 'fortran_order': False, 'shape': (1,)}", bytes(8)), "not an array"),
        (with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}", bytes(8)), "not an array"),
        (with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (True,)}", bytes(1)), "not an array"),
        (written(np.zeros(2), (3, 0)), "not a .npy file of version 1 or 2"),
        (b"\x93NUMPY", "not a .npy file"),
        (b"", "not a .npy file"),
        (with_header(" " * 20_000 + "{}"), "header of it is damaged"),
        (with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1L,)}", bytes(1)), "header of it is damaged"),
        (with_header("{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}", bytes(1)), "header of it is damaged"),
        (with_header("__import__('os').abort()"), "header of it is damaged"),
        (written(np.zeros(9))[:-1], "does not match its header"),
        (written(np.zeros(9)) + b"x", "does not match its header"),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,)}", b"x"), "does not match"),
    ],
    ids=range(17),
)
def test_whatever_is_not_an_array_of_this_size_is_refused(content: bytes, complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint):
        read(content)


def test_a_stream_that_ends_early_is_truncated() -> None:
    content = written(np.zeros(9))
    with pytest.raises(BadFile, match="it is truncated"):
        read_npy(io.BytesIO(content[:-8]), len(content), "it")


def test_an_empty_array_cannot_be_mapped(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(written(np.zeros(0)))
    with pytest.raises(BadFile, match="holds an empty array"):
        map_npy(tmp_path / "a.npy")


def test_labels_are_integers_from_zero() -> None:
    assert as_labels(np.array([[1], [0]], np.uint8), "it").tolist() == [1, 0]
    for odd in (np.array([0.0]), np.array([-1]), np.array([2**31]), np.zeros((2, 2), int)):
        with pytest.raises(BadFile, match="The labels in it"):
            as_labels(odd, "it")


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
@pytest.mark.parametrize("order", ["<", ">"])
def test_text_that_is_not_unicode_is_refused(tmp_path: Path, code: int, order: str) -> None:
    text = np.array(["ant", "bee"], f"{order}U3")
    text.view(f"{order}u4")[1] = code
    np.savez(tmp_path / "a.npz", classes=text)
    np.save(tmp_path / "a.npy", text)
    with pytest.raises(BadFile, match=r"classes in .* holds text that is not Unicode"):
        read_npz(tmp_path / "a.npz")
    with pytest.raises(BadFile, match="holds text that is not Unicode"):
        map_npy(tmp_path / "a.npy")


def test_a_damaged_name_in_a_zip_is_quoted_shortly(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros(9000, np.uint8))
    raw = bytearray(path.read_bytes())
    raw[26:28] = (8000).to_bytes(2, "little")  # the length of the name in the local header
    path.write_bytes(raw)
    with pytest.raises(BadFile, match="is damaged") as caught:
        read_npz(path)
    assert len(str(caught.value)) < 300 + len(str(path))
