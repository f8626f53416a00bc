"""Open files of other projects by content, not by name, without running code in them."""

from __future__ import annotations

import pickle
import struct
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.data.image_io import convert, decode, to_array
from condense_once.data.npy import map_npy, read_npz
from condense_once.data.safe_zip import open_zip
from condense_once.errors import BadFile, BadOption
from condense_once.files import existing_file
from condense_once.text import first_line

FileKind = Literal["torch", "npy", "npz", "image", "folder"]

# What PyTorch raises on damaged files; listed, so that a bug of ours is not reported as damage.
_DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, IndexError, KeyError, OSError),
    *(NotImplementedError, RuntimeError, SyntaxError, TypeError, UnicodeError, ValueError, struct.error),
)


@dataclass(frozen=True)
class OpenedFiles:
    """The given files, all of one kind, with one value each."""

    kind: FileKind
    values: tuple[Any, ...]
    names: tuple[str, ...]

    def describe(self) -> str:
        what = {
            "torch": "a PyTorch file",
            "npy": "an array",
            "npz": "arrays",
            "image": "an image",
            "folder": "a folder",
        }
        return what[self.kind] if len(self.values) == 1 else f"{len(self.values)} files, each {what[self.kind]}"


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
        "folder": Path,
    }
    return OpenedFiles(kind, tuple(readers[kind](path) for path in paths), tuple(path.name for path in paths))


def load_torch(path: Path) -> Any:
    """The content of a `.pt` file, on the CPU; a file that needs more than plain data is refused."""
    import torch  # here: it takes a second, and most commands do not need it

    if _is_zip(path):
        with open_zip(path) as archive:
            if broken := archive.testzip():  # PyTorch does not verify the checksums
                raise BadFile(f"{path} is damaged: {broken} does not match its checksum.")
    try:
        with torch.serialization.safe_globals(_safe_numpy_types()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd pickles, which raise below anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BadFile(f"{path} is damaged or would run code; refused ({first_line(error)[:160]}).") from None
    except _DAMAGE as error:
        raise BadFile(f"{path} cannot be read as a PyTorch file ({first_line(error)[:160]}).") from None


def load_image(path: Path) -> NDArray[np.uint8]:
    """An image as `[3, h, w]`."""
    return to_array(convert(decode(path.read_bytes(), str(path)), 3))


def is_pair(value: Any, *, label_axes: int) -> bool:
    """Whether a value is a pair of 4-D images and labels with this number of axes."""
    return isinstance(value, list | tuple) and [getattr(part, "ndim", 0) for part in value] == [4, label_axes]


def to_numpy(value: Any, what: str) -> NDArray[Any]:
    """A tensor or array as a numpy array of numbers; anything else is refused."""
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.layout) != "torch.strided" or value.is_quantized:
            raise BadFile(f"The {what} must be a plain dense tensor, not {value.layout}.")
        if value.is_floating_point() and value.element_size() < 4:
            value = value.float()  # numpy has no bfloat16
        value = value.numpy()
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
        raise BadFile(f"The {what} must be an array of numbers, not {type(value).__name__}.")
    return value


def _kind(path: Path) -> FileKind:
    if path.is_dir():
        return "folder"
    if _is_zip(path):
        with open_zip(path) as archive:
            return "torch" if any(name.endswith("/data.pkl") for name in archive.namelist()) else "npz"
    start = _start(path)
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start.startswith(b"\x80"):
        return "torch"  # the format before PyTorch 1.6
    if start.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF", b"BM")):
        return "image"
    if path.suffix == ".safetensors":
        raise BadFile(f"{path} is not a file of another project; if it is a condensed set, use it directly.")
    raise BadFile(f"{path} is neither a PyTorch file, a .npy or .npz file, an image nor a folder.")


def _is_zip(path: Path) -> bool:
    return _start(path).startswith(b"PK")


def _start(path: Path) -> bytes:
    with existing_file(path).open("rb") as file:
        return file.read(8)


def _safe_numpy_types() -> list[Any]:
    """The numpy types that result files contain besides tensors: scalars and their dtypes."""
    scalar = np.float64(0).__reduce__()[0]  # pickled under the module name of numpy 1 or 2
    kinds = ("float64", "float32", "int64", "int32")
    return [
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
        np.dtype,
        *(type(np.dtype(kind)) for kind in kinds),
    ]
