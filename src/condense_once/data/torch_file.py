"""PyTorch files (`torch.save`) of plain data and dense tensors, read without PyTorch and without running anything in them.

A `.pt` file is a zip (before PyTorch 1.6: a sequence of pickles) of one pickle and the bytes of its storages; a tensor is a
view of a storage. `torch.load(weights_only=True)` runs no code either, but a small file can crash it, make it allocate
what it only declares, or return tensors that cannot be used. Here no tensor reaches beyond its storage, no storage is
larger than its part of the file, and values are copied only once they are asked for.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.data.safe_zip import open_zip, read_member
from condense_once.data.unpickle import Machine, Named, run
from condense_once.errors import BadFile
from condense_once.files import existing_file

BFLOAT16 = "bfloat16"  # numpy has none: read as 16-bit integers, returned as float32
_CODES = {
    **{"uint8": "u1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "bool": "b1", BFLOAT16: "u2"},
    **{"uint16": "u2", "uint32": "u4", "uint64": "u8", "float16": "f2", "float32": "f4", "float64": "f8"},
    **{"complex64": "c8", "complex128": "c16"},
}
_STORAGES = {
    **{"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool"},
    **{"Half": "float16", "Float": "float32", "Double": "float64", "BFloat16": BFLOAT16},
    **{"ComplexFloat": "complex64", "ComplexDouble": "complex128"},
}
_TORCH_NAMES = {
    "collections.OrderedDict": "dict",
    "torch.Size": "size",
    "torch.Tensor": "tensor type",
    "torch.nn.parameter.Parameter": "tensor type",
    "torch._utils._rebuild_tensor": "tensor",
    "torch._utils._rebuild_tensor_v2": "tensor",
    "torch._utils._rebuild_tensor_v3": "tensor",
    "torch._utils._rebuild_parameter": "parameter",
    "torch._tensor._rebuild_from_type_v2": "subclass",
    "torch.storage.UntypedStorage": "storage uint8",
    **{f"torch.{name}Storage": f"storage {dtype}" for name, dtype in _STORAGES.items()},
    **{f"torch.{dtype}": f"dtype {dtype}" for dtype in _CODES},
}
# A view may repeat values, as `expand` does for grey images in three channels, but not a few into gigabytes.
MAX_REPEATS, MAX_REPEATED_SMALL = 16, 1 << 20
# The first pickle of files before PyTorch 1.6.
_MAGIC = 0x1950A86A20F9469CFC6C


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file: a view of its storage, copied out by `read`."""

    dtype: str
    shape: tuple[int, ...]
    _view: NDArray[Any] = field(repr=False)
    _negative: bool = False  # stored with the opposite sign, as views of conjugates are

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def read(self) -> NDArray[Any]:
        values = np.ascontiguousarray(self._view).reshape(self.shape)
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        if self.dtype == BFLOAT16:
            values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return -values if self._negative else values


def load_torch(path: Path) -> Any:
    """The content of a PyTorch file or a plain pickle; tensors are `StoredTensor`s, and other objects are refused."""
    with existing_file(path).open("rb") as file:
        is_zip = file.read(2) == b"PK"
    return _read_zip(path) if is_zip else _read_pickles(path)


@dataclass(frozen=True)
class _Storage:
    dtype: str
    data: bytes
    order: Literal["<", ">"]


@dataclass
class _TorchMachine(Machine):
    """The pickle machine that also builds tensors; `storage` returns the bytes of a storage by its key."""

    names: ClassVar[Mapping[str, str]] = {**Machine.names, **_TORCH_NAMES}

    storage: Callable[[str, str, int], _Storage] = field(kw_only=True)

    def unknown(self, called: str) -> BadFile:
        if called.startswith("torch."):
            return BadFile(
                f"{self.where} holds {called}, but only plain dense tensors can be read; save its images and labels alone."
            )
        return super().unknown(called)

    def persistent(self, identity: object) -> object:
        match identity:
            case ("storage", Named(what), str() as key, str(), int() as count, *view) if what.startswith("storage "):
                if view not in ([], [None]):
                    raise ValueError(identity)
                return self.storage(key, what.removeprefix("storage "), count)
        raise ValueError(identity)

    def call(self, called: object, arguments: object) -> object:
        match called, arguments:
            case Named("dict"), ():
                return {}
            case Named("size"), (tuple() as shape,):
                return shape
            case Named("tensor"), (_Storage() as storage, int() as offset, tuple() as shape, tuple() as strides, *rest):
                return _tensor(storage, offset, shape, strides, rest, self.where)
            case Named("parameter"), (StoredTensor() as tensor, *_):
                return tensor
            case Named("subclass"), (
                Named("tensor" | "parameter") as rebuild,
                Named("tensor type"),
                tuple() as inner,
                _,
            ):
                return self.call(rebuild, inner)
        return super().call(called, arguments)

    def build(self, made: object, state: object) -> object:
        if isinstance(made, dict):  # an OrderedDict with attributes, as networks' state dicts are
            return made
        return super().build(made, state)


def _tensor(
    storage: _Storage, offset: int, shape: tuple[Any, ...], strides: tuple[Any, ...], rest: list[object], where: str
) -> StoredTensor:
    # rest: requires_grad, hooks; then the dtype of an untyped storage, or nothing; then flags
    dtype = next((one.what.removeprefix("dtype ") for one in rest if isinstance(one, Named)), storage.dtype)
    flags = next((one for one in rest[2:] if isinstance(one, dict)), {})
    if len(shape) != len(strides) or not all(type(one) is int and one >= 0 for one in (offset, *shape, *strides)):
        raise ValueError(shape)
    kind = np.dtype(_CODES[dtype]).newbyteorder(storage.order)
    size = math.prod(shape) * kind.itemsize
    if size > max(len(storage.data) * MAX_REPEATS, MAX_REPEATED_SMALL):
        raise BadFile(
            f"{where} holds a tensor {list(shape)} that repeats the {len(storage.data)} bytes stored for it; save it with"
            " `.clone()`."
        )
    bytewise = tuple(stride * kind.itemsize for stride in strides)
    # numpy refuses a view that leaves its buffer
    view: NDArray[Any] = np.ndarray(shape, kind, storage.data, offset * kind.itemsize, bytewise)
    return StoredTensor(dtype, shape, view, bool(flags.get("neg")))


def _read_zip(path: Path) -> Any:
    with open_zip(path) as archive:
        names = set(archive.namelist())
        prefix = next((name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl")), "")
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise BadFile(f"{path} is compressed, which PyTorch files never are; save it again with `torch.save`.")
        order = read_member(archive, f"{prefix}byteorder") if f"{prefix}byteorder" in names else b"little"
        cache: dict[str, bytes] = {}

        def storage(key: str, dtype: str, count: int) -> _Storage:
            name = f"{prefix}data/{key}"
            if name not in cache:
                if name not in names:
                    raise BadFile(f"{path} is damaged: it lacks {name}.")
                cache[name] = read_member(archive, name)
            if len(cache[name]) != count * _width(dtype):
                raise BadFile(f"{path} is damaged: {name} does not have the size that its tensors expect.")
            return _Storage(dtype, cache[name], ">" if order == b"big" else "<")

        data = read_member(archive, f"{prefix}data.pkl")
        return run(_TorchMachine(str(path), len(data), storage=storage), io.BytesIO(data))


def _read_pickles(path: Path) -> Any:
    """A file before PyTorch 1.6 (magic number, version, system, object, storage keys, storages), or a single pickle."""
    stream = io.BytesIO(path.read_bytes())
    size = len(stream.getbuffer())
    declared: dict[str, _Storage] = {}

    def declare(key: str, dtype: str, count: int) -> _Storage:
        if key not in declared:
            room = size - sum(len(one.data) for one in declared.values())
            if not 0 <= count * _width(dtype) <= room:
                raise BadFile(f"{path} is damaged: its tensors are larger than the file.")
            declared[key] = _Storage(dtype, bytes(count * _width(dtype)), "<")
        return declared[key]

    def unpickle(storage: Callable[[str, str, int], _Storage]) -> object:
        return run(_TorchMachine(str(path), size, storage=storage), stream)

    content, start = unpickle(declare), 0
    is_torch = isinstance(content, int) and content == _MAGIC
    if is_torch:
        _version, system, start = unpickle(declare), unpickle(declare), stream.tell()
        unpickle(declare)  # the storages come after the object, so it is read twice
        order: Literal["<", ">"] = ">" if isinstance(system, dict) and system.get("little_endian") is False else "<"
        stored = _storages(stream, unpickle(declare), declared, order, path)
    if left := size - stream.tell():
        raise BadFile(f"{path} is damaged: {left} bytes follow its content.")
    if is_torch:
        stream.seek(start)
        content = unpickle(lambda key, _dtype, _count: stored[key])
    return content


def _storages(
    stream: io.BytesIO, keys: object, declared: Mapping[str, _Storage], order: Literal["<", ">"], path: Path
) -> dict[str, _Storage]:
    """The storages that follow a pickle, each after the number of its elements."""
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(declared):
        raise BadFile(f"{path} is damaged: its storages are not those of its tensors.")
    found = {}
    for key in map(str, keys):
        dtype, expected = declared[key].dtype, len(declared[key].data)
        count, data = int.from_bytes(stream.read(8), "little"), stream.read(expected)
        if count * _width(dtype) != expected or len(data) != expected:
            raise BadFile(f"{path} is damaged: a storage does not have the size that its tensors expect.")
        found[key] = _Storage(dtype, data, order)
    return found


def _width(dtype: str) -> int:
    return np.dtype(_CODES[dtype]).itemsize
