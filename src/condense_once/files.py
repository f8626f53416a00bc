"""Writing that is never half done: everything appears under its name complete, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from condense_once.errors import BadFile, BadOption


def refuse_existing(path: Path, force: bool) -> None:
    """Say no to an output that exists, before any work is spent on it.

    A folder is never replaced, whatever is asked: too much of somebody's could go with it.
    """
    if path.is_dir():
        raise BadOption(f"{path} is an existing folder; choose another output name or remove it first.")
    if path.exists() and not force:
        raise BadOption(f"{path} exists already; pass --force to replace it or choose another name.")
    if not path.absolute().parent.is_dir():
        raise BadOption(f"The folder {path.absolute().parent} does not exist; make it first.")


@contextmanager
def atomic_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open `path` for writing so that a kill at any moment leaves the old file or the new one."""
    refuse_existing(path, force)
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fchmod(out.fileno(), 0o666 & ~_umask())
            os.fsync(out.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.absolute().parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the name `path` once the block has ended without an error."""
    refuse_existing(path, force=False)
    part = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}.", suffix=".part"))
    try:
        yield part
        part.chmod(0o777 & ~_umask())
        part.rename(path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    _sync_folder(path.absolute().parent)


def existing_file(path: Path) -> Path:
    """`path` itself, once it is sure that it names a regular file with something in it."""
    if not path.exists():
        raise BadFile(f"There is no file {path}.")
    if not path.is_file():
        raise BadFile(f"{path} is not a regular file.")
    if path.stat().st_size == 0:
        raise BadFile(f"{path} is empty.")
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    # A rename survives a power cut only once the folder itself is on disk; Windows cannot open folders.
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
