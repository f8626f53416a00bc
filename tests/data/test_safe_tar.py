"""Tar files that lie about what they hold."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from condense_once.data.safe_tar import open_tar
from condense_once.errors import BadFile


def header(name: str, size: int, **fields: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def names(path: Path) -> list[str]:
    with open_tar(path) as archive:
        return [member.name for member in archive]


@pytest.mark.parametrize("size", [2**70, 2**40, 8**11 - 1, -1000, -(2**40)])
@pytest.mark.parametrize("packed", [False, True])
def test_numbers_that_no_file_has_are_one_sentence(tmp_path: Path, size: int, packed: bool) -> None:
    content = header("a", size) + bytes(4096)
    (tmp_path / "a.tar").write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(BadFile, match=r"declare more bytes|negative|unpacks to|implausible|end of data"):
        names(tmp_path / "a.tar")


def test_headers_of_headers_are_one_sentence(tmp_path: Path) -> None:
    chained = (header("././@LongLink", 2, type=tarfile.GNUTYPE_LONGNAME) + b"a\0".ljust(512, b"\0")) * 2000
    (tmp_path / "a.tar").write_bytes(chained + header("a", 0) + bytes(1024))
    with pytest.raises(BadFile, match="cannot be read as a tar"):
        names(tmp_path / "a.tar")


def test_a_gzip_unpacks_to_no_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condense_once.data.limits.FREE_BYTES", 1 << 16)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(header("big", 1 << 23) + bytes(1 << 23) + header("small", 0) + bytes(1024)))
    with pytest.raises(BadFile, match=r"a\.tar\.gz unpacks to 8\.0 MiB, more than"):
        names(path)
    path.write_bytes(gzip.compress(header("small", 0) + bytes(1 << 24)))  # behind the end of the tar
    with pytest.raises(BadFile, match="unpacks to"):
        names(path)


def test_sparse_files_and_links_are_left_out(tmp_path: Path) -> None:
    sparse = header("sparse", 0, type=tarfile.GNUTYPE_SPARSE)
    link = header("link", 0, type=tarfile.SYMTYPE, linkname="/etc/passwd")
    (tmp_path / "a.tar").write_bytes(sparse + link + header("file", 0) + bytes(1024))
    assert names(tmp_path / "a.tar") == ["file"]


def test_a_member_is_read_whole_but_not_if_it_is_huge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("a")
        info.size = 2_000_000
        archive.addfile(info, io.BytesIO(b"x" * 2_000_000))
    with open_tar(tmp_path / "a.tar") as opened:
        assert [opened.read(member) for member in opened] == [b"x" * 2_000_000]
    monkeypatch.setattr("condense_once.data.safe_tar.MAX_MEMBER", 1_500_000)
    with open_tar(tmp_path / "a.tar") as opened:
        (member,) = opened
        with pytest.raises(BadFile, match="2000000 bytes, more than the 1500000 allowed"):
            opened.read(member)
