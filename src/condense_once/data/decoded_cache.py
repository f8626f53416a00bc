"""Images decoded once: into memory if they are few, otherwise into a memory-mapped file in the user's cache folder.

A cached file is named by a digest of what its images were read from (paths, sizes and times of change of the files) and of
how they were decoded. It appears complete or not at all; two processes that want the same file build it once. Every image
has a CRC-32, verified when the image is first used; a damaged image is decoded again, and its file is removed. The least
recently used files make room for new ones.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from condense_once.byte_sizes import bytes_from_environment
from condense_once.data.encoded import EncodedSplit
from condense_once.data.source import ArraySplit, SplitName
from condense_once.errors import CondenseOnceError
from condense_once.progress import Progress
from condense_once.text import human_bytes

CACHE_LIMIT = 16 << 30  # bytes of all cached files
LIMIT_VARIABLE = "CONDENSE_ONCE_CACHE_LIMIT"
DISK_RESERVE = 1 << 28  # bytes of the disk left free
MEMORY_BYTES = 1 << 30  # decoded, that are kept in memory if they cannot be cached
SMALL_FILES, SMALL_BYTES = 1 << 22, 1 << 26  # encoded and decoded bytes that are decoded faster than a file is written
WAIT = 600.0  # seconds, for another process that decodes the same images
VERSION = 1  # of decoding and of the file: raise it when either changes
LINE_EVERY = 30.0  # seconds between two remarks while images are decoded
MANY = 1000  # images that take long enough to decode to say so
SETTLED = 2_000_000_000  # ns after which a change of a file has another time than the change before, on any file system

_MAGIC = b"CO-IMAGE"
_HEADER = struct.Struct("<8s32s4IQ")  # magic, key, shape of the images, when building began in ns

Notify = Callable[[str], None]


class _NoCache(Exception):
    """Why these images cannot be cached."""


def decode_once(
    splits: Mapping[SplitName, EncodedSplit], *, progress: Progress | None = None, notify: Notify | None = None
) -> dict[SplitName, EncodedSplit]:
    """The splits with their images decoded; `progress` counts images, `notify` receives why images are not cached."""
    total, done = sum(len(split.labels) for split in splits.values()), 0
    decoded: dict[SplitName, EncodedSplit] = {}
    for name, split in splits.items():
        report = partial(_report, progress, done, total)
        decoded[name] = _decoded(split, report, notify or (lambda _: None))
        done += len(split.labels)
    return decoded


def announce_decoding(notify: Notify) -> Progress:
    """A `progress` for `decode_once` that says that many images are being decoded, then now and then how many are."""
    last: float | None = None

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if total >= MANY and last is None:
            last = now
            notify(f"Decoding {total} images, once.")
        elif last is not None and now - last >= LINE_EVERY and done < total:
            last = now
            notify(f"Decoded {done} of {total} images.")

    return progress


def _report(progress: Progress | None, before: int, total: int, done: int) -> None:
    if progress is not None:
        progress(before + done, total)


def _decoded(split: EncodedSplit, report: Callable[[int], None], notify: Notify) -> EncodedSplit:
    encoded, needed = sum(size for _, _, size in split.listing), _bytes(split)
    if encoded <= SMALL_FILES and needed <= SMALL_BYTES:
        return replace(split, decoded=_in_memory(split, report))
    try:
        return replace(split, decoded=_cached(split, report))
    except CondenseOnceError:
        raise
    except (_NoCache, OSError) as error:
        reason = getattr(error, "strerror", None) or error
    if needed <= MEMORY_BYTES:
        notify(f"The decoded images are kept in memory, as they cannot be cached: {reason}.")
        return replace(split, decoded=_in_memory(split, report))
    notify(f"Images are decoded again whenever they are used, which is slow, as they cannot be cached: {reason}.")
    return split


def _in_memory(split: EncodedSplit, report: Callable[[int], None]) -> ArraySplit:
    images = np.empty((len(split.labels), *split.shape), np.uint8)
    for row, image in enumerate(split.decode(np.arange(len(images)))):
        images[row] = image
        report(row + 1)
    return ArraySplit(images, split.labels)


def _cached(split: EncodedSplit, report: Callable[[int], None]) -> CachedImages:
    folder, versions = cache_folder(), split.images.versions
    facts = [VERSION, split.shape, split.size, versions, split.listing]
    key = sha256(json.dumps(facts).encode()).digest()
    path = folder / f"{key.hex()[:32]}.images"
    since = max(change for *_, change in versions) + SETTLED
    if (found := _open(path, key, split, since)) is not None:
        return found
    with _locked(folder, key):
        if (found := _open(path, key, split, since)) is not None:  # built while this process waited
            return found
        _make_room(folder, _file_bytes(split), key)
        part = path.with_suffix(".part")
        try:
            with part.open("wb") as out:
                _write(split, key, out, report)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return CachedImages(path, key, split)


def cache_folder() -> Path:
    """The folder of decoded images: in `$CONDENSE_ONCE_CACHE`, or in the user's cache folder."""
    named, home = os.environ.get("CONDENSE_ONCE_CACHE"), os.environ.get("XDG_CACHE_HOME")
    try:
        parent = Path(named) if named else Path(home or Path.home() / ".cache") / "condense-once"
    except RuntimeError:
        raise _NoCache("there is no home folder; set $CONDENSE_ONCE_CACHE") from None
    folder = parent / "decoded"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise _NoCache(f"other users can write to {folder}")
    return folder


class CachedImages:
    """The decoded images of a split in a memory-mapped file; each is verified before its first use."""

    def __init__(self, path: Path, key: bytes, split: EncodedSplit) -> None:
        self._path, self._key, self._encoded = path, key, replace(split, decoded=None)
        shape = (len(split.labels), *split.shape)
        # Copy-on-write: a repaired image stays in this process.
        self._images = np.asarray(np.memmap(path, np.uint8, "c", _HEADER.size + 4, shape))
        self._sums = np.fromfile(path, "<u4", shape[0], offset=_HEADER.size + 4 + math.prod(shape))
        self._verified = np.zeros(shape[0], bool)

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
        verified = self._verified[rows]
        if not verified.all():
            self._verify(np.arange(len(self._verified))[rows][~verified])
        return self._images[rows].copy() if isinstance(rows, slice) else self._images[rows]

    def _verify(self, rows: NDArray[np.int64]) -> None:
        damaged = [row for row in rows if zlib.crc32(self._images[row].data) != self._sums[row]]
        if damaged:
            self._path.unlink(missing_ok=True)  # the next process decodes it again
            for row, image in zip(damaged, self._encoded.decode(np.array(damaged)), strict=True):
                self._images[row] = image
        self._verified[rows] = True

    def __reduce__(self) -> tuple[Any, ...]:  # another process maps the file, or decodes as needed
        return _reopened, (self._path, self._key, self._encoded)


def _reopened(path: Path, key: bytes, split: EncodedSplit) -> CachedImages | EncodedSplit:
    return _open(path, key, split, since=0) or split


def _open(path: Path, key: bytes, split: EncodedSplit, since: int) -> CachedImages | None:
    """The cached images, if the file is whole and no image has changed since it was built."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size + 4)
            if os.fstat(file.fileno()).st_size != _file_bytes(split) or not _is_sum(head[:-4], head[-4:]):
                return None
            magic, stored_key, *shape, built = _HEADER.unpack(head[:-4])
            if (magic, stored_key, tuple(shape)) != (_MAGIC, key, (len(split.labels), *split.shape)) or built < since:
                return None
            file.seek(-4 * len(split.labels) - 4, os.SEEK_END)
            tail = file.read()
            if not _is_sum(tail[:-4], tail[-4:]):
                return None
        with suppress(OSError):  # a read-only cache can be used, too
            os.utime(path)  # for the choice of the least recently used
        return CachedImages(path, key, split)
    except OSError:
        return None


def _write(split: EncodedSplit, key: bytes, out: BinaryIO, report: Callable[[int], None]) -> None:
    head = _HEADER.pack(_MAGIC, key, len(split.labels), *split.shape, time.time_ns())
    out.write(head + struct.pack("<I", zlib.crc32(head)))
    sums = np.empty(len(split.labels), "<u4")
    for row, image in enumerate(split.decode(np.arange(len(sums)))):
        content = np.ascontiguousarray(image).data
        sums[row] = zlib.crc32(content)
        out.write(content)
        report(row + 1)
    out.write(sums.tobytes() + struct.pack("<I", zlib.crc32(sums.tobytes())))


@contextmanager
def _locked(folder: Path, key: bytes) -> Iterator[None]:
    lock = _lock(folder, key.hex())
    try:
        lock.acquire(timeout=WAIT)
    except Timeout:
        raise _NoCache("another process has been decoding them for a long time") from None
    try:
        yield
    finally:
        lock.release()


def _lock(folder: Path, name: str) -> FileLock:
    return FileLock(folder / f"{name[0]}.lock")  # sixteen for all files: those of single files would pile up


def _make_room(folder: Path, needed: int, key: bytes) -> None:
    """Remove what processes that were killed left behind, then the least recently used files."""
    limit = bytes_from_environment(LIMIT_VARIABLE, CACHE_LIMIT)
    if needed > limit:
        raise _NoCache(
            f"they take {human_bytes(needed)}, more than the {human_bytes(limit)} of the cache, which"
            f" ${LIMIT_VARIABLE} sets"
        )
    for part in folder.glob("*.part"):
        _remove_if_dead(part, folder, own=key.hex()[0])
    files = sorted(folder.glob("*.images"), key=_last_use)
    total = sum(map(_size, files))
    for file in files:
        if total + needed <= limit and shutil.disk_usage(folder).free >= needed + DISK_RESERVE:
            break
        total -= _size(file)
        with suppress(OSError):  # Windows keeps files that are in use
            file.unlink(missing_ok=True)
    if shutil.disk_usage(folder).free < needed + DISK_RESERVE:
        raise _NoCache(f"they take {human_bytes(needed)}, and the disk of {folder} is nearly full")


def _remove_if_dead(part: Path, folder: Path, own: str) -> None:
    """Remove an unfinished file unless another process holds its lock; `own` is the lock of this process."""
    if part.name[0] == own:
        part.unlink(missing_ok=True)
        return
    lock = _lock(folder, part.name)
    with suppress(Timeout, OSError):
        lock.acquire(timeout=0)
        part.unlink(missing_ok=True)
        lock.release()


def _is_sum(content: bytes, stored: bytes) -> bool:
    return struct.pack("<I", zlib.crc32(content)) == stored


def _bytes(split: EncodedSplit) -> int:
    return len(split.labels) * math.prod(split.shape)


def _file_bytes(split: EncodedSplit) -> int:
    return _HEADER.size + 4 + _bytes(split) + 4 * len(split.labels) + 4


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed by another process
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
