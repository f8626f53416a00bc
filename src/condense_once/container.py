"""The safetensors container, read by byte ranges.

Standard library and numpy only, because the device reader must run where nothing else is installed. One parser with one
set of checks reads local files and web servers alike. The `safetensors` package reads the same files; the tests compare
it with this module.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadFile
from condense_once.files import existing_file
from condense_once.text import short_line

MAX_DEPTH = 64  # of lists and objects in a header
MAX_HEADER = 16 * 2**20  # bytes; enough for 65,536 class names and the checksums of terabytes
DTYPES: dict[str, np.dtype[Any]] = {
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
}
CODES = {dtype.name: code for code, dtype in DTYPES.items()}
Layout = Mapping[str, tuple[str, tuple[int, ...]]]  # dtype code and shape of each tensor, in file order


class ByteRanges(Protocol):
    """Random access to bytes `[start, stop)` of something whose size is known."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def read(self, start: int, stop: int) -> memoryview: ...


class LocalFile:
    """A local file, read on demand: what was read stays as it is, whatever becomes of the file."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._file = existing_file(path).open("rb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._lock = Lock()  # threads share the position in the file
        self.size = os.fstat(self._file.fileno()).st_size

    def read(self, start: int, stop: int) -> memoryview:
        data = memoryview(bytearray(max(min(stop, self.size) - start, 0)))
        done = 0
        with self._lock:
            self._file.seek(start)
            while done < len(data):  # one call reads at most 2 GiB
                count = self._file.readinto(data[done:])
                if not count:
                    raise BadFile(f"{self.name} was truncated while it was open; open it again.")
                done += count
        return data.toreadonly()


class MappedFile:
    """A local file, memory-mapped: it takes no memory of its own, and whoever changes it changes what was read.

    Once it is truncated, touching what was read before ends the process (SIGBUS).
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        with existing_file(path).open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.size = len(self._map)

    def read(self, start: int, stop: int) -> memoryview:
        if self._map.size() < self.size:  # touching pages that are gone would kill the process
            raise BadFile(f"{self.name} was truncated while it was open; open it again.")
        return memoryview(self._map)[start:stop]


class InMemory:
    """A file's content in memory."""

    def __init__(self, content: bytes, name: str) -> None:
        self.name, self.size, self._content = name, len(content), memoryview(content)

    def read(self, start: int, stop: int) -> memoryview:
        return self._content[start:stop]


class Beginning:
    """The first bytes of a file, as if it ended there."""

    def __init__(self, file: ByteRanges, size: int) -> None:
        self.name, self.size, self._file = file.name, min(size, file.size), file

    def read(self, start: int, stop: int) -> memoryview:
        return self._file.read(start, min(stop, self.size))


@dataclass(frozen=True)
class TensorSpec:
    """The location of a tensor, in bytes from the start of the file."""

    code: str
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return DTYPES[self.code]

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True)
class Index:
    """The validated header of a safetensors file."""

    metadata: Mapping[str, str]
    tensors: Mapping[str, TensorSpec]
    data_start: int
    stop: int  # where the file should end


def read_index(file: ByteRanges, *, may_be_cut: bool = False) -> Index:
    """Read and validate the header. As the format demands, the tensors cover the rest of the file without gaps.

    With `may_be_cut` the file may end anywhere after its header; the caller compares its size with `stop`.
    """
    if file.size < 8:
        raise BadFile(f"{file.name} is too short to be a condensed set.")
    length = int.from_bytes(file.read(0, 8), "little")
    if length > MAX_HEADER:
        raise BadFile(f"{file.name} is not a condensed set; if another project made it, import it first.")
    if 8 + length > file.size:
        raise BadFile(f"{file.name} is truncated: its header should be {length:,} bytes long.")
    header = _parse_header(bytes(file.read(8, 8 + length)), file.name)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise BadFile(f"{file.name} is damaged: its metadata is not text.")
    tensors = {name: _tensor_spec(name, entry, 8 + length, file.name) for name, entry in header.items()}
    end = 8 + length
    for spec in sorted(tensors.values(), key=lambda s: (s.start, s.stop)):
        if spec.start != end:
            raise BadFile(f"{file.name} is damaged: its tensors leave a gap or overlap at byte {end:,}.")
        end = spec.stop
    index = Index(metadata, tensors, data_start=8 + length, stop=end)
    if end < file.size or not may_be_cut:
        check_size(file, index)
    return index


def check_size(file: ByteRanges, index: Index) -> None:
    """Refuse a file that does not end where its header says."""
    if index.stop != file.size:
        kind = "truncated" if index.stop > file.size else "too long"
        raise BadFile(f"{file.name} is {kind}: {file.size:,} bytes where its header promises {index.stop:,}.")


def write_container(out: BinaryIO, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays in the given order; put wider dtypes first so that every tensor is aligned."""
    out.write(header_bytes({name: (CODES[array.dtype.name], array.shape) for name, array in tensors.items()}, metadata))
    for array in tensors.values():
        out.write(raw_bytes(array))


def header_bytes(layout: Layout, metadata: Mapping[str, str]) -> bytes:
    """The bytes before the tensors: length and JSON header."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, (code, shape) in layout.items():
        end = offset + tensor_bytes(code, shape)
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def tensor_bytes(code: str, shape: Iterable[int]) -> int:
    return DTYPES[code].itemsize * math.prod(shape)


def raw_bytes(array: NDArray[Any]) -> memoryview:
    """The bytes of an array as stored: row-major, little-endian, without a copy where possible."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


def check_json(value: Any) -> None:
    r"""Raise a `ValueError` for what Python's parser accepts and other code stumbles over.

    That is nesting beyond any header's, numbers that overflow to infinity, and halves of surrogate pairs.

    >>> check_json(json.loads('{"a": [1, "text"]}'))
    >>> check_json(json.loads("[" * 99 + "]" * 99))
    Traceback (most recent call last):
    ValueError: it is nested more than 64 levels deep
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        deeper: list[Any] = []
        for one in level:
            match one:
                case dict():
                    deeper += [*one.keys(), *one.values()]
                case list() | tuple():
                    deeper += one
                case str():
                    one.encode()  # raises a UnicodeEncodeError, a ValueError
                case float() if not math.isfinite(one):
                    raise ValueError("a number is out of range")
        level = deeper
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def parse_json(text: str, where: str) -> dict[str, Any]:
    """Parse a JSON object strictly: no duplicate keys and no NaN, which Python's parser would accept; see `check_json`."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("duplicate key")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        parsed = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        check_json(parsed)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{where} is not a condensed set or is damaged: its header is not JSON ({error}).") from None
    if not isinstance(parsed, dict):
        raise BadFile(f"{where} is not a condensed set: its header is not a JSON object.")
    return parsed


def _parse_header(raw: bytes, where: str) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadFile(f"{where} is not a condensed set: its header is not text.") from None
    return parse_json(text, where)


def _tensor_spec(name: str, entry: object, data_start: int, where: str) -> TensorSpec:
    match entry:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [int(start), int(stop)]} if (
            code in DTYPES and all(type(side) is int and side >= 0 for side in shape) and 0 <= start <= stop
        ):
            if tensor_bytes(code, shape) == stop - start:
                return TensorSpec(code, tuple(shape), data_start + start, data_start + stop)
    raise BadFile(
        f"{where} is damaged or from another tool: the description of tensor {short_line(repr(name), 80)} is invalid."
    )
