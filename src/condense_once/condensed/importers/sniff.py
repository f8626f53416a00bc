"""Open files of other projects by content, not by name, without running code in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.data.image_io import convert, decode, to_array
from condense_once.data.npy import map_npy, read_npz
from condense_once.data.safe_zip import open_zip
from condense_once.data.torch_file import StoredTensor, load_torch
from condense_once.errors import BadFile, BadOption
from condense_once.files import existing_file
from condense_once.text import readable

FileKind = Literal["torch", "npy", "npz", "image", "parquet", "folder"]
KINDS: dict[FileKind, str] = {
    "torch": "a PyTorch file",
    "npy": "a .npy file",
    "npz": "an .npz file",
    "image": "an image",
    "parquet": "a parquet file",
    "folder": "a folder",
}
MAX_LISTED = 8  # parts of a file that a message lists
MAX_KEY = 40  # characters of a part's name in a message


@dataclass(frozen=True)
class OpenedFiles:
    """The given files, all of one kind, with one value each."""

    kind: FileKind
    values: tuple[Any, ...]
    names: tuple[str, ...]

    def describe(self) -> str:
        """Kind and content, for messages."""
        if self.kind in ("image", "parquet", "folder"):
            return " and ".join(KINDS[self.kind] for _ in self.values)
        return " and ".join(f"{KINDS[self.kind]} with {summarise(value)}" for value in self.values)


def open_files(paths: Sequence[Path]) -> OpenedFiles:
    if not 1 <= len(paths) <= 2:
        raise BadOption(f"Pass one file, or a pair of images and labels, not {len(paths)} files.")
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise BadOption(f"{paths[0]} and {paths[1]} are of different types and cannot form one set.")
    kind = kinds.pop()
    readers: dict[FileKind, Callable[[Path], Any]] = {
        "torch": load_torch,
        "npy": map_npy,
        "npz": read_npz,
        "image": load_image,
        "parquet": Path,
        "folder": Path,
    }
    return OpenedFiles(kind, tuple(readers[kind](path) for path in paths), tuple(path.name for path in paths))


def load_image(path: Path) -> NDArray[np.uint8]:
    """An image as `[3, h, w]`."""
    return to_array(convert(decode(path.read_bytes(), str(path)), 3))


def is_array(value: object) -> bool:
    return isinstance(value, np.ndarray | StoredTensor)


def is_pair(value: Any, *, label_axes: int) -> bool:
    """Whether a value is a pair of 4-D images and labels with this number of axes."""
    return (
        isinstance(value, list | tuple)
        and all(map(is_array, value))
        and [part.ndim for part in value] == [4, label_axes]
    )


def to_numpy(value: Any, what: str) -> NDArray[Any]:
    """A tensor, an array or a list of numbers or equal arrays as one array of numbers; anything else is refused."""
    if isinstance(value, StoredTensor):
        value = value.read()
    elif isinstance(value, list | tuple):
        value = _stacked(value, what)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
        given = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise BadFile(f"The {what} must be an array of numbers, not {given}.")
    return value.astype(np.float32) if value.dtype == np.float16 else value


def summarise(value: object, depth: int = 2) -> str:
    """What a file holds, in words: keys, types and shapes.

    >>> summarise({"images": np.zeros((2, 3, 8, 8), np.float32), "epoch": 3})
    'images (float32 [2, 3, 8, 8]) and epoch (int)'
    >>> summarise([np.zeros(4), {"a": [1, 2, 3]}])
    'a list of float64 [4] and a dict'
    """
    match value:
        case np.ndarray() | StoredTensor():
            return f"{value.dtype} {list(value.shape)}"
        case dict() if depth == 2:
            return _listed(
                [f"{readable(key)[:MAX_KEY]} ({summarise(one, 0)})" for key, one in _first(value.items())], value
            )
        case list() | tuple() if depth == 2:
            return f"a list of {_listed([summarise(one, 0) for one in _first(value)], value)}"
        case dict():
            return "a dict"
        case list() | tuple():
            return "a list"
    return type(value).__name__


def _first(parts: Any) -> list[Any]:
    return [part for _, part in zip(range(MAX_LISTED), parts, strict=False)]


def _listed(parts: list[str], whole: Mapping[Any, Any] | Sequence[Any]) -> str:
    if more := len(whole) - len(parts):
        parts = [*parts, f"{more} more"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts) or "nothing"


def _stacked(values: Sequence[Any], what: str) -> NDArray[Any]:
    """A list of numbers, or of arrays of one shape, as one array."""
    if values and all(type(one) in (int, float) for one in values):
        return np.array(values)
    if not values or not all(is_array(one) and one.shape == values[0].shape for one in values):
        raise BadFile(f"The {what} must be an array or a list of arrays of one shape, not {summarise(values)}.")
    return np.stack([to_numpy(one, what) for one in values])


def _kind(path: Path) -> FileKind:
    if path.is_dir():
        return "folder"
    start = _start(path)
    if start.startswith(b"PK"):
        with open_zip(path) as archive:
            return "torch" if any(name.endswith("/data.pkl") for name in archive.namelist()) else "npz"
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start.startswith(b"\x80"):
        return "torch"  # a pickle, as PyTorch wrote before 1.6
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF", b"BM")):
        return "image"
    if path.suffix == ".safetensors":
        raise BadFile(f"{path} is not a file of another project; if it is a condensed set, use it directly.")
    raise BadFile(f"{path} is neither a PyTorch, .npy, .npz or parquet file nor an image nor a folder.")


def _start(path: Path) -> bytes:
    with existing_file(path).open("rb") as file:
        return file.read(8)
