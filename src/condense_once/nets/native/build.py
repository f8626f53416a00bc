"""Compile the C++ kernels with the system's compiler and load them.

The library is cached by a hash of its sources, the flags and what the compiler predefines for this CPU, so every process
after the first loads it in milliseconds.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import logging
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from threading import Lock

from condense_once.text import first_line

SOURCES = ("winograd.cpp", "norm_relu_pool.cpp")
# Results depend on these: vector instructions of this CPU and fused multiply-adds, but IEEE arithmetic otherwise.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared")
THREADS = () if sys.platform == "darwin" else ("-fopenmp",)  # Apple's compiler has no OpenMP
COMPILERS = ("clang++", "g++") if sys.platform == "darwin" else ("g++", "clang++")
POINTER, SIZE = ctypes.c_void_p, ctypes.c_int64

log = logging.getLogger(__name__)
_building = Lock()


class BuildError(Exception):
    """The kernels cannot be compiled or loaded here."""


def has_compiler() -> bool:
    """Whether there is a C++ compiler: `$CXX`, g++ or clang++."""
    return _compiler() is not None


@cache
def warn_of_no_compiler() -> None:
    """Say once that training is slower without a compiler; whoever sets `$CXX` has chosen."""
    if not os.environ.get("CXX"):
        log.warning(
            "There is no C++ compiler here (g++ or clang++): training on the CPU works, but can take several times as long."
        )


def is_available() -> bool:
    """Whether the kernels are compiled and loaded; compiles them on the first call, and warns once if that fails."""
    return _library() is not None


@cache
def function(name: str, *arguments: type) -> Callable[..., None]:
    """The function of this name in the library of kernels."""
    library = _library()
    if library is None:
        raise BuildError(f"There is no native {name} here, as the kernels cannot be compiled.")
    found = getattr(library, name)
    found.argtypes, found.restype = list(arguments), None
    called: Callable[..., None] = found
    return called


def _library() -> ctypes.CDLL | None:
    with _building:  # the threads of one process wait for one build
        return _load()


@cache
def _load() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(_built()))
    except (BuildError, OSError) as error:
        log.warning("The native kernels cannot be compiled (%s); using PyTorch's layers instead.", first_line(error))
        return None


def _built() -> Path:
    """The compiled library, from the cache if it is there."""
    compiler = _compiler()
    if compiler is None:
        raise BuildError("there is no C++ compiler")
    flags = (*FLAGS, *THREADS)
    sources = {name: resources.files(__package__).joinpath(name).read_bytes() for name in SOURCES}
    # The predefined macros include the compiler's version and the instruction sets of -march=native.
    machine = _run([*compiler, "-march=native", "-x", "c++", "-E", "-dM", os.devnull])
    key = hashlib.sha256(repr((sources, compiler, flags, machine)).encode()).hexdigest()[:32]
    folder = _cache_folder()
    library = folder / f"kernels-{key}.so"
    if not _is_ours(library):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:  # another process may build at the same time
            for name, content in sources.items():
                (Path(scratch) / name).write_bytes(content)
            _run([*compiler, *flags, *SOURCES, "-o", library.name], cwd=scratch)
            (Path(scratch) / library.name).chmod(0o700)  # whatever the umask
            (Path(scratch) / library.name).replace(library)  # atomic
    return library


def _compiler() -> list[str] | None:
    named = shlex.split(os.environ.get("CXX", ""))
    candidates = [named] if named else [[name] for name in COMPILERS]
    return next((command for command in candidates if shutil.which(command[0])), None)


def _run(command: list[str], cwd: str | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise BuildError(f"{command[0]}: {(errors or [f'exit code {done.returncode}'])[0]}")
    return done.stdout


def _cache_folder() -> Path:
    """`$CONDENSE_ONCE_CACHE`, or the user's cache; a folder for this process alone if others could write there."""
    named, cache_home = os.environ.get("CONDENSE_ONCE_CACHE"), os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(named) if named else Path(cache_home or Path.home() / ".cache") / "condense-once"
        (home / "native").mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = (home / "native").resolve()  # what is checked is what is used, wherever links lead later
        if _is_private(folder):
            return folder
        log.warning("Others can write to %s or a folder above it; kernels are compiled anew by every process.", folder)
    except (OSError, RuntimeError):  # no home, or none that can be written to
        pass
    return _scratch_folder()


def _is_private(folder: Path) -> bool:
    """Whether nobody else can put a library there for us to execute, nor another folder in its place."""
    if not hasattr(os, "getuid"):
        return False
    return os.access(folder, os.W_OK) and _is_own(folder.stat()) and all(map(_is_safe_above, folder.parents))


def _is_safe_above(folder: Path) -> bool:
    status = folder.stat()
    shared = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX  # in /tmp nobody renames what is not theirs
    return status.st_uid in (0, os.getuid()) and not shared


def _is_ours(library: Path) -> bool:
    """Whether a library is there and nobody else can have written it."""
    try:
        status = library.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and (not hasattr(os, "getuid") or _is_own(status))


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _scratch_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="condense-once-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
