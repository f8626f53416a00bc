"""Atomic writes: a file or folder appears under its name complete, or not at all.

Until it is complete it is a hidden `.part` beside its target, locked by the process that writes it. A killed process leaves
its part behind; the next one that writes the same target finds it unlocked and removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from condense_once.errors import BadFile, BadOption, CondenseOnceError, InaccessibleFile, MissingFile

try:
    import fcntl
except ImportError:  # Windows: parts of killed processes stay
    fcntl = None  # type: ignore[assignment]


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

    Without `force`, a file that another process has put there in the meantime stays. A symbolic link stays one: its target
    is written.
    """
    refuse_existing(path, force)
    target = _target(path)
    remove_abandoned(target)
    part, out, lock = _new_file(target)
    try:
        with out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if force:
            part.replace(target)
        elif not _name_exclusively(part, target):
            raise _written_meanwhile(path)
        _sync_folder(target.parent)
    except BaseException as error:
        part.unlink(missing_ok=True)
        _name_the_output(error, path, part)
        raise
    finally:
        _close(lock)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that is renamed to `path` once the block ends without an error."""
    refuse_existing(path, force=False)
    target = _target(path)
    remove_abandoned(target)
    part, lock = _new_folder(target)
    try:
        yield part
        _sync_content(part)  # else a power cut could leave empty files behind
        try:
            part.rename(target)
        except OSError:
            if os.path.lexists(target):
                raise _written_meanwhile(path) from None
            raise
        _sync_folder(target.parent)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        _name_the_output(error, path, part)
        raise
    finally:
        _close(lock)


def remove_abandoned(path: Path) -> None:
    """Remove the parts of `path` that killed processes left behind; those of running processes are locked."""
    if fcntl is None:
        return
    target = _target(path)
    with suppress(OSError), os.scandir(target.parent) as entries:
        parts = [target.with_name(entry.name) for entry in entries if _is_part(entry.name, target)]
        for part in parts:
            with suppress(OSError):
                _remove_unlocked(part)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Lock `path` against other processes; fail at once if one of them holds the lock."""
    from filelock import FileLock, Timeout  # late: a device reads files without it

    path.parent.stat()  # raises if the folder is missing; `FileLock` would create it
    name = path.with_name(f"{path.name}.lock")
    lock = FileLock(name, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise BadFile(f"Another process is using {path}; wait until it has finished and try again.") from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file
            name.unlink()
        lock.release()


def existing_file(path: Path) -> Path:
    """`path`, if it is a regular file that is not empty."""
    if not path.exists():
        raise MissingFile(f"There is no file {path}.")
    if not path.is_file():
        raise BadFile(f"{path} is {'a folder, not a file' if path.is_dir() else 'not a regular file'}.")
    if path.stat().st_size == 0:
        raise BadFile(f"{path} is empty.")
    return path


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `Path.resolve` raises on circular links; here they stay links


def _part(target: Path) -> Path:
    return target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.part")


def _prefix(target: Path) -> str:
    return f".{target.name[:40]}."  # file names end at 255 bytes; 40 characters are at most 160


def _is_part(name: str, target: Path) -> bool:
    prefix = _prefix(target)
    return name.startswith(prefix) and re.fullmatch(r"[0-9a-f]{16}\.part", name[len(prefix) :]) is not None


def _new_file(target: Path) -> tuple[Path, BinaryIO, int | None]:
    """A new part, open for writing, and the handle that keeps it locked until it is closed."""
    while True:
        part = _part(target)
        out = part.open("xb")  # not `mkstemp`: a new file gets its mode from the umask
        lock = None if fcntl is None else os.dup(out.fileno())
        if _is_locked(part, lock):
            return part, out, lock
        out.close()
        _close(lock)


def _new_folder(target: Path) -> tuple[Path, int | None]:
    while True:
        part = _part(target)
        part.mkdir()
        lock = None if fcntl is None else os.open(part, os.O_RDONLY)
        if _is_locked(part, lock):
            return part, lock
        _close(lock)


def _is_locked(part: Path, handle: int | None) -> bool:
    """Lock a new part; false if another process removed it before it was locked."""
    if handle is None:
        return True
    with suppress(OSError):  # a file system without locks; then nobody can lock a part in order to remove it, either
        fcntl.flock(handle, fcntl.LOCK_SH)
    return part.exists()


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def _remove_unlocked(part: Path) -> None:
    handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process runs
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink()
    finally:
        os.close(handle)


def _name_exclusively(part: Path, target: Path) -> bool:
    """Rename a file unless the new name is taken, which plain renaming on POSIX would replace; whether it was free."""
    try:
        if os.name == "posix":
            _link(part, target)
        else:
            part.rename(target)
    except FileExistsError:
        return False
    return True


def _link(part: Path, target: Path) -> None:
    try:
        os.link(part, target)
        part.unlink()
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name with an empty file
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        part.replace(target)


def _name_the_output(error: BaseException, path: Path, part: Path) -> None:
    """Raise an error of the disk as one sentence about the output, not about its part."""
    if isinstance(error, CondenseOnceError) or not isinstance(error, OSError):
        return
    if error.filename is None or str(error.filename).startswith(str(part)):
        raise InaccessibleFile(f"{path} cannot be written: {error.strerror or error}.") from error


def _written_meanwhile(path: Path) -> BadOption:
    return BadOption(
        f"{path} was written by another process in the meantime and is left as it is; choose another name, or pass"
        " `force` to replace it."
    )


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
