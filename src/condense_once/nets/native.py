"""Layers in C++ of our own, compiled when they are first needed, in seconds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

FLAGS = ("-ftree-loop-vectorize", "-ffp-contract=fast")  # PyTorch writes its vectors by hand and turns these off
POINTER, SIZE = ctypes.c_void_p, ctypes.c_int64


@cache
def function(source: str, name: str, *arguments: type) -> Callable[..., None]:
    """A function of one of the `.cpp` files beside this one."""
    found = getattr(_library(source), name)
    found.argtypes, found.restype = list(arguments), None
    called: Callable[..., None] = found
    return called


@cache
def _library(source: str) -> Any:
    from torch._inductor.codecache import CppCodeCache

    text = resources.files(__package__).joinpath(source).read_text(encoding="utf-8")
    return CppCodeCache.load(text, extra_flags=FLAGS)
