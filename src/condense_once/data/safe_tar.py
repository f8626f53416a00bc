"""Tar files, plain or gzipped, read in place: nothing is extracted to disk, and no header decides what is allocated."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from condense_once.data.limits import check_memory
from condense_once.errors import BadFile, CondenseOnceError
from condense_once.files import existing_file
from condense_once.text import short_line

MAX_MEMBER = 1 << 28  # bytes of one file; the largest real one, CIFAR-100's train, has 155 million

# What `tarfile` raises on damaged files; OverflowError: numbers that no system takes, RecursionError: headers of headers.
_DAMAGE = (
    *(tarfile.TarError, zlib.error, EOFError, OSError, ValueError, IndexError, KeyError),
    *(OverflowError, RecursionError, MemoryError),
)


class TarReader:
    """The regular files of a tar, in order."""

    def __init__(self, archive: tarfile.TarFile, path: Path) -> None:
        self._archive, self._path = archive, path

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        while (member := self._archive.next()) is not None:
            self._archive.members = []  # type: ignore[attr-defined] # else `tarfile` keeps every header
            place = PurePosixPath(member.name)
            # Nothing is extracted, but a tar with path traversal is not to be trusted.
            if place.is_absolute() or ".." in place.parts:
                raise BadFile(f"{self._path} has a member outside its own folder ({member.name!a}); refused.")
            if not member.size >= 0 or self._archive.offset <= member.offset:
                raise tarfile.ReadError("a member has a negative size")  # `tarfile` would go round for ever
            if member.isreg() and not member.issparse():
                yield member

    def read(self, member: tarfile.TarInfo) -> bytes:
        """All bytes of a member, while it is the current one."""
        if member.size > MAX_MEMBER:
            raise BadFile(
                f"{member.name!a} in {self._path} has {member.size} bytes, more than the {MAX_MEMBER} allowed."
            )
        content = self._archive.extractfile(member)
        return b"" if content is None else content.read()


@contextmanager
def open_tar(path: Path) -> Iterator[TarReader]:
    """The tar at `path`; damage found while the block reads from it, or after what it has read, raises `BadFile`."""
    with _reading(path) as (reader, stream):
        yield reader
        while stream.read(1 << 20):  # to the end, where the gzip checksum is
            pass


def first_name(path: Path) -> str | None:
    """The name of the first file in the tar at `path`, without reading the rest."""
    with _reading(path) as (reader, _):
        return next((member.name for member in reader), None)


def is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def _reading(path: Path) -> Iterator[tuple[TarReader, _Bounded]]:
    existing_file(path)
    try:
        with path.open("rb") as file:
            packed = is_gzip(path)
            stream = _Bounded(gzip.GzipFile(fileobj=file) if packed else file, path, packed)
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                yield TarReader(archive, path), stream
    except CondenseOnceError:
        raise
    except _DAMAGE as error:
        raise BadFile(f"{path} cannot be read as a tar ({short_line(error)}); download it again.") from error


class _Bounded(io.RawIOBase):
    """A stream that ends at the memory limit: `tarfile` reads headers of any declared length, and seeks over any member."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, path: Path, packed: bool) -> None:
        self._stream, self._path, self._packed = stream, path, packed
        self._stored = path.stat().st_size

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= MAX_MEMBER:
            raise tarfile.ReadError("it has a member of implausible size")
        check_memory(self._stream.tell(), self._stored, str(self._path))
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        if whence != 0 or offset < 0 or (offset > self._stored and not self._packed):
            raise tarfile.ReadError("its members declare more bytes than it has")
        check_memory(offset, self._stored, str(self._path))
        return self._stream.seek(offset)

    def tell(self) -> int:
        return self._stream.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
