"""Pickles of plain data and numpy arrays, read without running anything in them.

The official CIFAR files are pickles, as is the index of a PyTorch file, and a pickle is a program. A restricted
`pickle.Unpickler.find_class` prevents calls, but not crashes: one megabyte of nested tuples as a dict key is a
segmentation fault in CPython 3.11, a memo index of 2³¹ allocates gigabytes, and numpy trusts the flags of a pickled
dtype. So this module interprets the opcodes itself: only those that build plain data are supported, and nothing that the
file names is ever imported or called.
"""

from __future__ import annotations

import io
import pickletools
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadFile, CondenseOnceError

# The globals that arrays and bytes are pickled with; `Machine.call` implements each of them.
_NAMES = {
    "numpy.ndarray": "ndarray",
    "numpy.dtype": "dtype",
    "numpy.core.multiarray._reconstruct": "array",
    "numpy._core.multiarray._reconstruct": "array",
    "numpy.core.numeric._frombuffer": "frombuffer",  # arrays in protocol 5
    "numpy._core.numeric._frombuffer": "frombuffer",
    "numpy.core.multiarray.scalar": "scalar",
    "numpy._core.multiarray.scalar": "scalar",
    "_codecs.encode": "encode",  # bytes of Python 3 in protocol 2
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = re.compile(r"(BIN)?INT[12]?|LONG[14]?|(BIN)?FLOAT|(SHORT_)?(BIN)?(STRING|UNICODE8?|BYTES8?)|BYTEARRAY8")

# What invalid operands raise here. `pickletools` raises ValueError for nearly everything, but only warns of an invalid
# escape sequence.
_DAMAGE = (ValueError, TypeError, IndexError, KeyError, OverflowError, DeprecationWarning, SyntaxWarning)


def load_plain(data: bytes, where: str) -> object:
    """The content of the pickle `data`; `where` names it in errors. Python 2 strings are decoded as latin-1.

    >>> import pickle
    >>> load_plain(pickle.dumps({"labels": [3, 1], "data": np.arange(2)}), "batch")
    {'labels': [3, 1], 'data': array([0, 1])}
    >>> load_plain(pickle.dumps(eval), "batch")
    Traceback (most recent call last):
    condense_once.errors.BadFile: batch would run code (builtins.eval); refused.
    """
    stream = io.BytesIO(data)
    value = run(Machine(where, room=len(data)), stream)
    if left := len(data) - stream.tell():
        raise BadFile(f"{where} is damaged: {left} bytes follow its pickle; download it again.")
    return value


def run(machine: Machine, stream: io.BytesIO) -> object:
    """The content of the pickle at the position of `stream`, which then is behind it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for opcode, argument, _ in pickletools.genops(stream):
                machine.step(opcode.name, argument)
        (value,) = machine.stack
    except CondenseOnceError:
        raise
    except _DAMAGE as error:
        raise BadFile(
            f"{machine.where} is damaged: it is not a complete pickle of plain data; download it again."
        ) from error
    return _finished(value)


@dataclass(frozen=True)
class Named:
    """A known global, under a short name."""

    what: str


@dataclass
class _Dtype:
    code: str
    order: str = "|"


@dataclass
class _Array:
    """Pickles create an empty array, may memoize it, and fill it with a later opcode."""

    value: NDArray[Any] | None = None


@dataclass
class Machine:
    """The pickle stack machine, without access to anything outside."""

    names: ClassVar[Mapping[str, str]] = _NAMES

    where: str
    # How much more text may be encoded; through the memo, a small file could encode the same text for ever.
    room: int
    stack: list[object] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, object] = field(default_factory=dict)

    def step(self, opcode: str, argument: Any) -> None:
        match opcode:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "BINPERSID":
                self.stack.append(self.persistent(*self.pop(1)))
            case "MARK":
                self.marks.append(len(self.stack))
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = self.stack[-1]
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "APPEND" | "APPENDS":
                items = self.pop(1) if opcode == "APPEND" else self.pop_marked()
                _append(self.stack[-1], items)
            case "SETITEM" | "SETITEMS":
                items = self.pop(2) if opcode == "SETITEM" else self.pop_marked()
                _put(self.stack[-1], items)
            case _:
                self.stack.append(self.made(opcode, argument))

    def made(self, opcode: str, argument: Any) -> object:
        """The object that an opcode pushes on the stack."""
        match opcode:
            case "NONE" | "NEWTRUE" | "NEWFALSE" | "EMPTY_TUPLE":
                return _CONSTANTS[opcode]
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                return tuple(self.pop(int(opcode[-1])))
            case "TUPLE":
                return tuple(self.pop_marked())
            case "EMPTY_LIST":
                return []
            case "LIST":
                return self.pop_marked()
            case "EMPTY_DICT":
                return {}
            case "DICT":
                return _put({}, self.pop_marked())
            case "GET" | "BINGET" | "LONG_BINGET":
                return _finished(self.memo[argument])
            case "GLOBAL" | "INST":
                return self.named(*argument.split(" ", 1))
            case "STACK_GLOBAL":
                return self.named(*self.pop(2))
            case "REDUCE":
                return self.call(*self.pop(2))
            case "BUILD":
                return self.build(*self.pop(2))
            case _ if _LITERALS.fullmatch(opcode):
                return argument
        raise ValueError(opcode)

    def pop(self, count: int) -> list[object]:
        if count > len(self.stack):
            raise IndexError(count)
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def pop_marked(self) -> list[object]:
        return self.pop(len(self.stack) - self.marks.pop())

    def named(self, module: object, name: object) -> Named:
        if not isinstance(module, str) or not isinstance(name, str):
            raise TypeError(module)
        called = f"{module}.{name}"
        if called not in self.names:
            raise self.unknown(called[:80] if called.isprintable() else ascii(called[:80]))
        return Named(self.names[called])

    def unknown(self, called: str) -> BadFile:
        return BadFile(f"{self.where} would run code ({called}); refused.")

    def persistent(self, identity: object) -> object:
        """What stands outside the pickle under this identity; nothing, for plain data."""
        raise ValueError(identity)

    def call(self, called: object, arguments: object) -> object:
        match called, arguments:
            case Named("array"), (Named("ndarray"), *_):
                return _Array()
            case Named("frombuffer"), (
                bytes() | bytearray() as raw,
                _Dtype() as dtype,
                tuple() as shape,
                "C" | "F" as order,
            ):
                return _array(raw, dtype, shape, order)
            case Named("dtype"), (str() as code, *_):
                return _Dtype(code)
            case Named("encode"), (str() as text, "latin1"):
                return self.latin1(text)
            case Named("scalar"), (_Dtype() as dtype, bytes() as raw):
                return _array(raw, dtype, (), "C").item()
        raise ValueError(called)

    def build(self, made: object, state: object) -> object:
        match made, state:
            case _Dtype(), (int(), "<" | ">" | "|" as order, *_):
                made.order = order
                return made
            case _Array(), (int(), tuple() as shape, _Dtype() as dtype, int() as fortran, bytes() | str() as raw):
                content = self.latin1(raw) if isinstance(raw, str) else raw
                made.value = _array(content, dtype, shape, "F" if fortran else "C")
                return made.value
        raise ValueError(made)

    def latin1(self, text: str) -> bytes:
        self.room -= len(text)
        if self.room < 0:
            raise ValueError(self.room)
        return text.encode("latin-1")


def _finished(value: object) -> object:
    return value.value if isinstance(value, _Array) and value.value is not None else value


def _append(target: object, items: list[object]) -> None:
    if not isinstance(target, list):
        raise TypeError(target)
    target.extend(items)


def _put(target: object, items: list[object]) -> dict[object, object]:
    keys, values = items[::2], items[1::2]
    # Hashing a deeply nested tuple overflows the C stack, so only plain keys are allowed.
    if not isinstance(target, dict) or not all(isinstance(key, str | bytes | int) for key in keys):
        raise TypeError(target)
    target.update(zip(keys, values, strict=True))
    return target


def _array(raw: bytes | bytearray, dtype: _Dtype, shape: tuple[Any, ...], order: Literal["C", "F"]) -> NDArray[Any]:
    if not re.fullmatch(r"b1|[iuf][1248]", dtype.code):
        raise ValueError(dtype)
    array: NDArray[Any] = np.ndarray(shape, np.dtype(dtype.order + dtype.code), raw, order=order)
    if array.nbytes != len(raw):
        raise ValueError(shape)
    return array
