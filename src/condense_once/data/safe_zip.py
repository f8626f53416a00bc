"""Zip files that are looked through before they are read, and never unpacked to disk."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from condense_once.errors import BadFile
from condense_once.files import existing_file

STRONGEST_DEFLATE = 1032  # deflate, in zips as in gzip, makes at most so many bytes of one

# What `zipfile` raises on damage: RuntimeError stands for encryption, NotImplementedError for unknown compression.
# Not MemoryError: sizes are checked beforehand, so that it is the machine that is too small.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip at `path`; damage found while the block reads from it is a `BadFile`, too.

    Every member is stored or deflated, goes by the same name in the table and in front of its bytes, and by no other's,
    and has no more bytes than can be packed into those of the file. They are checked by its checksum once they are read
    to the end.
    """
    existing_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check(archive, path)
            yield archive
    except _DAMAGE as error:
        raise BadFile(f"{path} is damaged ({error}); get it again.") from error


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """All bytes of a member: as many as the table says, where `ZipFile.read` would unpack more and throw them away."""
    with archive.open(name) as stream:
        return stream.read(archive.getinfo(name).file_size)


def _check(archive: zipfile.ZipFile, path: Path) -> None:
    names = archive.namelist()
    if _entries(path) not in (len(names), 0xFFFF):  # 0xFFFF: too many to say it here
        raise BadFile(f"{path} is damaged: some members are missing from its table; get it again.")
    if len(set(names)) != len(names):
        raise BadFile(f"{path} holds two members of one name; make it again.")
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadFile(f"{member.filename} in {path} is neither stored nor deflated; make it again.")
        strongest = STRONGEST_DEFLATE if member.compress_type == zipfile.ZIP_DEFLATED else 1
        if member.file_size > member.compress_size * strongest:
            raise BadFile(f"{member.filename} in {path} claims more bytes than can be packed into it; not read.")
        archive.open(member).close()  # compares the two places where its name stands
    if sum(member.compress_size for member in archive.infolist()) > path.stat().st_size:  # they share bytes, or lie
        raise BadFile(f"The members of {path} claim more bytes than it has; not read.")


def _entries(path: Path) -> int:
    """How many members the end of a zip speaks of: `zipfile` does not miss those that a damaged entry swallows."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16) - 22))  # a comment of that length may follow
        tail = file.read()
    (count,) = struct.unpack_from("<H", tail, tail.rindex(b"PK\5\6") + 10)
    return int(count)
