"""Writing that is never half done: everything appears under its name complete, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from condense_once.errors import BadFile, BadOption


def refuse_existing(path: Path, force: bool, *, inputs: Iterable[Path] = ()) -> None:
    """Say no to an output that exists, before any work is spent on it.

    Whatever is asked, a folder is never replaced, for too much of somebody's could go with it; nor is a pipe, a device
    or a socket, which is no place for a file; nor one of the `inputs`, under whatever name it is given.
    """
    target = _target(path)
    if target.is_dir():
        raise BadOption(f"{path} is an existing folder; choose another output name or remove it first.")
    if os.path.lexists(target) and not target.is_file():
        raise BadOption(f"{path} exists and is not a regular file; choose another output name.")
    for given in inputs:
        if target.exists() and given.exists() and target.samefile(given):
            raise BadOption(f"{path} is also what is read ({given}); choose another output name.")
    if target.exists() and not force:
        raise BadOption(f"{path} exists already; pass --force to replace it or choose another name.")
    if not target.parent.is_dir():
        raise BadOption(f"The folder {target.parent} does not exist; make it first.")
    if not os.access(target.parent, os.W_OK):
        raise BadOption(f"Nothing can be written to the folder {target.parent}; choose another one.")


@contextmanager
def atomic_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open `path` for writing so that a kill at any moment leaves the old file or the new one.

    A symbolic link stays one: what it points to is written.
    """
    refuse_existing(path, force)
    target = _target(path)
    part = _part(target)
    try:
        with part.open("xb") as out:  # with the rights of any new file: the system itself applies the umask
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
    """Yield an empty folder that takes the name `path` once the block has ended without an error."""
    refuse_existing(path, force=False)
    target = _target(path)
    part = _part(target)
    part.mkdir()
    try:
        yield part
        _sync_content(part)  # else a power cut could leave empty files under the name
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    _sync_folder(target.parent)


def existing_file(path: Path) -> Path:
    """`path` itself, once it is sure that it names a regular file with something in it."""
    if not path.exists():
        raise BadFile(f"There is no file {path}.")
    if not path.is_file():
        raise BadFile(f"{path} is not a regular file.")
    if path.stat().st_size == 0:
        raise BadFile(f"{path} is empty.")
    return path


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `Path.resolve` raises on links that go in circles; here they stay links


def _part(target: Path) -> Path:
    # Of a long name only the start, for systems end at 255 bytes; 40 characters are at most 160 of them.
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.part")


def _sync_content(folder: Path) -> None:
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            with Path(place, name).open("r+b") as file:  # Windows syncs only what is open for writing
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
