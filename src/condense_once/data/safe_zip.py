"""Zip files, validated before reading and never extracted to disk."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from condense_once.errors import BadFile, CondenseOnceError
from condense_once.files import existing_file
from condense_once.text import human_bytes, short_line

MAX_DEFLATE_RATIO = 1032  # of deflate, in zip and gzip
# Images rarely shrink tenfold. A zip may unpack to this many times its size, or to this many bytes if it is small.
MAX_UNPACKED_RATIO, MAX_UNPACKED_SMALL = 64, 1 << 28

# What `zipfile` raises on damaged files; RuntimeError: encryption or unknown compression.
# Not MemoryError: sizes are checked first, so then the machine is too small.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip at `path`; damage found while the block reads from it also raises `BadFile`.

    Every member is stored or deflated, has one unique name in the directory and in its local header, and declares no more
    bytes than its compressed data can hold. Its checksum is verified when it is read to the end. All members together
    unpack to a size in proportion to the file.
    """
    existing_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check(archive, path)
            yield archive
    except CondenseOnceError:
        raise
    except _DAMAGE as error:
        raise BadFile(f"{path} is damaged ({short_line(error)}); download or create it again.") from error


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """All bytes of a member, but no more than declared; `ZipFile.read` would decompress the rest, too."""
    with archive.open(name) as stream:
        return stream.read(archive.getinfo(name).file_size)


def _check(archive: zipfile.ZipFile, path: Path) -> None:
    names = archive.namelist()
    if _entries(path) not in (len(names), 0xFFFF):  # 0xFFFF: too many for this field
        raise BadFile(f"{path} is damaged: some members are missing from its directory; download or create it again.")
    if len(set(names)) != len(names):
        raise BadFile(f"{path} holds two members of the same name; create it again.")
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadFile(
                f"{short_line(member.filename, 80)} in {path} is neither stored nor deflated; create it again."
            )
        ratio = MAX_DEFLATE_RATIO if member.compress_type == zipfile.ZIP_DEFLATED else 1
        if member.file_size > member.compress_size * ratio:
            raise BadFile(
                f"{short_line(member.filename, 80)} in {path} declares more bytes than its data can hold; refused."
            )
        archive.open(member).close()  # compares the name in the directory with the local header
    if sum(member.compress_size for member in archive.infolist()) > path.stat().st_size:  # they overlap, or lie
        raise BadFile(f"The members of {path} declare more bytes than it has; refused.")
    packed, unpacked = path.stat().st_size, sum(member.file_size for member in archive.infolist())
    if unpacked > max(packed * MAX_UNPACKED_RATIO, MAX_UNPACKED_SMALL):
        raise BadFile(
            f"{path} would unpack from {human_bytes(packed)} to {human_bytes(unpacked)}, far more than images do; refused."
        )


def _entries(path: Path) -> int:
    """The number of members in the end record: `zipfile` does not notice members lost to a damaged entry."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16) - 22))  # a comment of up to 64 KiB may follow
        tail = file.read()
    (count,) = struct.unpack_from("<H", tail, tail.rindex(b"PK\5\6") + 10)
    return int(count)
