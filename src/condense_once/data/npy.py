"""Arrays in numpy's own file format, believed only as far as their bytes bear out what their header says."""

from __future__ import annotations

import ast
import math
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.data.safe_zip import open_zip
from condense_once.errors import BadFile
from condense_once.files import existing_file

_LONGEST_HEADER = 10_000  # bytes, as numpy itself has it
# What a senseless header raises; Python's parser says MemoryError to brackets that are nested too deeply.
_DAMAGE = (
    *(struct.error, ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError),
    *(DeprecationWarning, SyntaxWarning),
)


@dataclass(frozen=True)
class Header:
    """What a file says it holds, which is also exactly as long as the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int  # of the first element, in bytes


def read_npy(stream: IO[bytes], size: int, where: str) -> NDArray[Any]:
    """The array in a stream of `size` bytes; a header that promises more or less than that is not followed."""
    header = read_header(stream, size, where)
    content = stream.read(size)
    if len(content) != size - header.offset:
        raise BadFile(f"{where} is cut off; get it again.")
    return np.ndarray(header.shape, header.dtype, content, order=header.order)


def map_npy(path: Path) -> NDArray[Any]:
    """The array in a file, left on disk until it is used."""
    size = existing_file(path).stat().st_size
    with path.open("rb") as file:
        header = read_header(file, size, str(path))
    if size == header.offset:
        raise BadFile(f"{path} holds an empty array.")
    return np.asarray(np.memmap(path, header.dtype, "r", header.offset, header.shape, header.order))


@contextmanager
def open_npz(path: Path) -> Iterator[Mapping[str, Callable[[], NDArray[Any]]]]:
    """The arrays of an `.npz` by name, each as a function that reads it: what is not called for costs nothing."""
    with open_zip(path) as archive:

        def read(name: str, member: zipfile.ZipInfo) -> NDArray[Any]:
            with archive.open(member) as stream:
                return read_npy(stream, member.file_size, f"{name} in {path}")

        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise BadFile(f"{path} holds two arrays of one name; make it again.")
        yield {name: partial(read, name, member) for name, member in members.items()}


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an `.npz`, by name, in memory."""
    with open_npz(path) as arrays:
        return {name: read() for name, read in arrays.items()}


def read_header(stream: IO[bytes], size: int, where: str) -> Header:
    start = stream.read(12)
    if not re.match(rb"\x93NUMPY[\x01\x02]\x00", start):
        raise BadFile(f"{where} is not a .npy file of version 1 or 2.")
    try:
        head, form = (10, "<H") if start[6] == 1 else (12, "<I")
        (length,) = struct.unpack(form, start[8:head])
        if length > _LONGEST_HEADER:
            raise ValueError(length)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python only warns of some nonsense, such as an escape that is none
            said = ast.literal_eval((start[head:] + stream.read(length + head - 12)).decode("latin-1"))
        shape, fortran, code = said["shape"], said["fortran_order"], said["descr"]
        # Only numbers and fixed-width strings: objects would be pickles, records are of no use here.
        if not re.fullmatch(r"[<>|]([biuf]\d|[SU]\d{1,9})", code) or not all(type(n) is int and n >= 0 for n in shape):
            raise BadFile(f"{where} holds {code} {shape}, not an array of numbers or strings.")
        header = Header(np.dtype(code), tuple(shape), "F" if fortran else "C", head + length)
    except _DAMAGE as error:
        raise BadFile(f"The header of {where} is damaged; get it again.") from error
    if header.offset + math.prod(header.shape) * header.dtype.itemsize != size:
        raise BadFile(f"{where} has {size} bytes, which is not what its header says; get it again.")
    return header


def as_labels(array: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Whole numbers `[n]`, also from `[n, 1]` as Keras writes them."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise BadFile(f"The labels in {where} must be whole numbers [n], not {array.dtype} {list(array.shape)}.")
    if array.size and (array.min() < 0 or array.max() >= 2**31):
        raise BadFile(f"The labels in {where} are {array.min()}…{array.max()}; classes are numbered from 0.")
    return array.astype(np.int64)
