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

# What `zipfile` raises on damage: RuntimeError stands for encryption, NotImplementedError for unknown compression.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, MemoryError)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip at `path`; damage found while the block reads from it is a `BadFile`, too.

    Every member is stored or deflated, goes by the same name in the table and in front of its bytes, and by no other's.
    Its bytes are checked by its checksum once they are read to the end.
    """
    existing_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check(archive, path)
            yield archive
    except _DAMAGE as error:
        raise BadFile(f"{path} is damaged ({error}); get it again.") from error


def _check(archive: zipfile.ZipFile, path: Path) -> None:
    names = archive.namelist()
    if _entries(path) not in (len(names), 0xFFFF):  # 0xFFFF: too many to say it here
        raise BadFile(f"{path} is damaged: some members are missing from its table; get it again.")
    if len(set(names)) != len(names):
        raise BadFile(f"{path} holds two members of one name; make it again.")
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadFile(f"{member.filename} in {path} is neither stored nor deflated; make it again.")
        archive.open(member).close()  # compares the two places where its name stands


def _entries(path: Path) -> int:
    """How many members the end of a zip speaks of: `zipfile` does not miss those that a damaged entry swallows."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16) - 22))  # a comment of that length may follow
        tail = file.read()
    (count,) = struct.unpack_from("<H", tail, tail.rindex(b"PK\5\6") + 10)
    return int(count)
