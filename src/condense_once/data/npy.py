"""numpy's own file formats, read without pickles and only if header and file size agree."""

from __future__ import annotations

import math
import struct
import tokenize
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from condense_once.data.limits import check_memory
from condense_once.data.safe_zip import open_zip
from condense_once.errors import BadFile
from condense_once.files import existing_file

CHUNK = 1 << 22  # bytes read at a time

# What an invalid header raises; Python's parser raises MemoryError if brackets are nested too deeply.
_DAMAGE = (
    *(ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError, Warning),
    *(struct.error, tokenize.TokenError),
)


@dataclass(frozen=True)
class Header:
    """A header that matches the size of its file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int  # of the first element, in bytes


def read_npy(stream: IO[bytes], size: int, where: str) -> NDArray[Any]:
    """The array in a stream of `size` bytes."""
    header = read_header(stream, size, where)
    content = np.empty(size - header.offset, np.uint8)
    for start in range(0, len(content), CHUNK):  # reading all at once would take twice the memory
        part = stream.read(min(CHUNK, len(content) - start))
        content[start : start + len(part)] = np.frombuffer(part, np.uint8)
        if len(part) < min(CHUNK, len(content) - start):
            raise BadFile(f"{where} is truncated; download or create it again.")
    return _valid_text(np.ndarray(header.shape, header.dtype, content.data, order=header.order), where)


def map_npy(path: Path) -> NDArray[Any]:
    """The array in a file, memory-mapped."""
    size = existing_file(path).stat().st_size
    with path.open("rb") as file:
        header = read_header(file, size, str(path))
    if size == header.offset:
        raise BadFile(f"{path} holds an empty array.")
    return _valid_text(
        np.asarray(np.memmap(path, header.dtype, "r", header.offset, header.shape, header.order)), str(path)
    )


@contextmanager
def open_npz(path: Path) -> Iterator[Mapping[str, Callable[[], NDArray[Any]]]]:
    """The arrays of an `.npz` by name, each as a function that reads it; together they stay below the memory limit."""
    with open_zip(path) as archive:
        taken: dict[str, int] = {}

        def read(name: str, member: zipfile.ZipInfo) -> NDArray[Any]:
            taken[name] = member.file_size
            check_memory(sum(taken.values()), path.stat().st_size, str(path))
            with archive.open(member) as stream:
                return read_npy(stream, member.file_size, f"{name} in {path}")

        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise BadFile(f"{path} holds two arrays of the same name; create it again.")
        if odd := [name for name in members if not name.isprintable()]:
            raise BadFile(f"{path} holds an array with a name that is not printable ({odd[0]!a}); create it again.")
        yield {name: partial(read, name, member) for name, member in members.items()}


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an `.npz`, by name, in memory."""
    with open_npz(path) as arrays:
        return {name: read() for name, read in arrays.items()}


def read_header(stream: IO[bytes], size: int, where: str) -> Header:
    readers = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
    try:
        read = readers[npy_format.read_magic(stream)]
    except (ValueError, KeyError):
        raise BadFile(f"{where} is not a .npy file of version 1 or 2.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy repairs headers of Python 2, Python warns of invalid escapes
            shape, fortran_order, dtype = read(stream)  # at most 10,000 bytes, literals only
    except _DAMAGE as error:
        raise BadFile(f"The header of {where} is damaged; download or create it again.") from error
    # Only numbers and fixed-width strings: objects would be pickles.
    if dtype.kind not in "biufSU" or dtype.shape or any(type(side) is not int or side < 0 for side in shape):
        raise BadFile(f"{where} holds {dtype} {shape}, not an array of numbers or strings.")
    header = Header(dtype, shape, "F" if fortran_order else "C", stream.tell())
    if header.offset + math.prod(header.shape) * header.dtype.itemsize != size:
        raise BadFile(f"{where} has {size} bytes, which does not match its header; download or create it again.")
    return header


def _valid_text(array: NDArray[Any], where: str) -> NDArray[Any]:
    """The same array, if its text is Unicode: Python fails on other characters only when it prints them."""
    if array.dtype.kind == "U" and array.nbytes:
        codes = np.ascontiguousarray(array).reshape(-1).view(array.dtype.str[0] + "u4")
        if codes.max() > 0x10FFFF or ((codes >= 0xD800) & (codes < 0xE000)).any():
            raise BadFile(f"{where} holds text that is not Unicode; download or create it again.")
    return array


def as_labels(array: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Integers `[n]`, also from `[n, 1]` as Keras writes them."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise BadFile(f"The labels in {where} must be integers [n], not {array.dtype} {list(array.shape)}.")
    if array.size and (array.min() < 0 or array.max() >= 2**31):
        raise BadFile(f"The labels in {where} are {array.min()}…{array.max()}; classes are numbered from 0.")
    return array.astype(np.int64)
