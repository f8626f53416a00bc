"""Atomic writes: a file or folder appears under its name complete, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from condense_once.errors import BadFile, BadOption, MissingFile


def refuse_existing(path: Path, force: bool, *, inputs: Iterable[Path] = ()) -> None:
    """Refuse to overwrite an existing output, before any work is spent on it.

    Even with `force`, a folder is never replaced (too much could be lost), nor a pipe, device or socket, nor one of the
    `inputs`, under whatever name it is given.
    """
    target = _target(path)
    if target.is_dir():
        raise BadOption(f"{path} is an existing folder; choose another output name or remove it first.")
    if os.path.lexists(target) and not target.is_file():
        raise BadOption(f"{path} exists and is not a regular file; choose another output name.")
    for given in inputs:
        if target.exists() and given.exists() and target.samefile(given):
            raise BadOption(f"{path} is also an input ({given}); choose another output name.")
    if target.exists() and not force:
        raise BadOption(f"{path} exists already; pass `force` to replace it or choose another name.")
    if not target.parent.is_dir():
        raise BadOption(f"The folder {target.parent} does not exist; create it first.")
    if not os.access(target.parent, os.W_OK):
        raise BadOption(f"The folder {target.parent} is not writable; choose another one.")


@contextmanager
def atomic_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open `path` for writing; a kill at any moment leaves either the old file or the new one.

    A symbolic link stays one: its target is written.
    """
    refuse_existing(path, force)
    target = _target(path)
    part = _part(target)
    try:
        with part.open("xb") as out:  # not `mkstemp`: a new file gets its mode from the umask
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that is renamed to `path` once the block ends without an error."""
    refuse_existing(path, force=False)
    target = _target(path)
    part = _part(target)
    part.mkdir()
    try:
        yield part
        _sync_content(part)  # else a power cut could leave empty files behind
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    _sync_folder(target.parent)


def existing_file(path: Path) -> Path:
    """`path`, if it is a regular file that is not empty."""
    if not path.exists():
        raise MissingFile(f"There is no file {path}.")
    if not path.is_file():
        raise BadFile(f"{path} is not a regular file.")
    if path.stat().st_size == 0:
        raise BadFile(f"{path} is empty.")
    return path


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `Path.resolve` raises on circular links; here they stay links


def _part(target: Path) -> Path:
    # File names end at 255 bytes; 40 characters are at most 160.
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.part")


def _sync_content(folder: Path) -> None:
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            with Path(place, name).open("r+b") as file:  # Windows only syncs files open for writing
                os.fsync(file.fileno())
        _sync_folder(Path(place))


def _sync_folder(folder: Path) -> None:
    # A rename survives a power cut only once the folder itself is on disk; Windows cannot open folders.
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
