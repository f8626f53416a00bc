"""Opening whatever is given without running anything in it, by its first bytes rather than its name."""

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

from condense_once.data.image_io import coloured, decode, pixels
from condense_once.data.npy import map_npy, read_npz
from condense_once.data.safe_zip import open_zip
from condense_once.errors import BadFile, BadOption
from condense_once.files import existing_file
from condense_once.text import first_line

Kind = Literal["torch", "npy", "npz", "picture", "folder"]

# What PyTorch's reader raises on damaged bytes. A list, so that a mistake of ours is not taken for one of the file's.
_DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, IndexError, KeyError, OSError),
    *(NotImplementedError, RuntimeError, SyntaxError, TypeError, UnicodeError, ValueError, struct.error),
)


@dataclass(frozen=True)
class Content:
    """The files given, opened: one kind for all, one value each."""

    kind: Kind
    values: tuple[Any, ...]
    names: tuple[str, ...]

    def describe(self) -> str:
        what = {
            "torch": "a PyTorch file",
            "npy": "an array",
            "npz": "arrays",
            "picture": "a picture",
            "folder": "a folder",
        }
        return what[self.kind] if len(self.values) == 1 else f"{len(self.values)} files, each {what[self.kind]}"


def read_content(paths: Sequence[Path]) -> Content:
    if not 1 <= len(paths) <= 2:
        raise BadOption(f"Give one file, or a pair of images and labels, not {len(paths)} files.")
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise BadOption(f"{paths[0]} and {paths[1]} are of different kinds and cannot be one set.")
    kind = kinds.pop()
    readers: dict[Kind, Callable[[Path], Any]] = {
        "torch": load_torch,
        "npy": map_npy,
        "npz": read_npz,
        "picture": load_picture,
        "folder": Path,
    }
    return Content(kind, tuple(readers[kind](path) for path in paths), tuple(path.name for path in paths))


def load_torch(path: Path) -> Any:
    """The tensors of a `.pt` file, on the CPU; a file that wants anything but data to be loaded is refused."""
    import torch  # late: it takes a second, and most commands do without

    if _is_zip(path):
        with open_zip(path) as archive:
            if broken := archive.testzip():  # PyTorch itself does not look at the archive's checksums
                raise BadFile(f"{path} is damaged: {broken} does not match its checksum.")
    try:
        with torch.serialization.safe_globals(_harmless_numpy()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd pickles, which end in an error of ours anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BadFile(
            f"{path} is damaged or wants to run code of its own; it is not read ({first_line(error)[:160]})."
        ) from None
    except _DAMAGE as error:
        raise BadFile(f"{path} cannot be read as a PyTorch file ({first_line(error)[:160]}).") from None


def load_picture(path: Path) -> NDArray[np.uint8]:
    """A picture as `[3, h, w]`."""
    return pixels(coloured(decode(path.read_bytes(), str(path)), 3))


def is_pair(value: Any, *, label_axes: int) -> bool:
    """Whether a value is a pair of four-dimensional images and labels of so many dimensions."""
    return isinstance(value, list | tuple) and [getattr(part, "ndim", 0) for part in value] == [4, label_axes]


def to_numpy(value: Any, what: str) -> NDArray[Any]:
    """A tensor or array as a plain array; anything else is not what the format promises."""
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


def _kind(path: Path) -> Kind:
    if path.is_dir():
        return "folder"
    if _is_zip(path):
        with open_zip(path) as archive:
            return "torch" if any(name.endswith("/data.pkl") for name in archive.namelist()) else "npz"
    start = _start(path)
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start.startswith(b"\x80"):
        return "torch"  # as PyTorch wrote before 1.6
    if start.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF", b"BM")):
        return "picture"
    if path.suffix == ".safetensors":
        raise BadFile(f"{path} is no file of another project; if it is a condensed set, use it as it is.")
    raise BadFile(f"{path} is neither a PyTorch file, a .npy or .npz file, a picture nor a folder.")


def _is_zip(path: Path) -> bool:
    return _start(path).startswith(b"PK")


def _start(path: Path) -> bytes:
    with existing_file(path).open("rb") as file:
        return file.read(8)


def _harmless_numpy() -> list[Any]:
    """The few numpy types that result files carry beside their tensors: scalars and their types."""
    scalar = np.float64(0).__reduce__()[0]  # files name it by numpy 1's module or by numpy 2's
    kinds = ("float64", "float32", "int64", "int32")
    return [
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
        np.dtype,
        *(type(np.dtype(kind)) for kind in kinds),
    ]
