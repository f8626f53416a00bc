"""Large files over unreliable networks: go on where it stopped, check every byte, never show half a file.

What has come lies in `<path>.part` until it is whole and its checksum is right; only then does it take its name. The part
outlives errors, Ctrl-C and power cuts, and the next call asks for the rest alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request

from condense_once.errors import BadFile, BadOption
from condense_once.web import ask

Progress = Callable[[int, int | None], None]  # bytes there so far, bytes in all if known
GUARD = 1 << 34  # of a file whose length nobody told, no more than this is taken: 16 GiB


class Unreachable(BadFile):
    """A file that its server does not hand out, now or ever; another way to it may still work."""


class _Broken(Exception):
    """A connection that ended too early; the next one may do better."""


@dataclass(frozen=True)
class Checksum:
    """The digest that a file must have."""

    kind: Literal["md5", "sha256"]
    hex: str

    def of(self, path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.new(self.kind, usedforsecurity=False)).hexdigest()


def download(
    url: str,
    path: Path,
    *,
    size: int | None,
    checksum: Checksum,
    progress: Progress = lambda _done, _total: None,
    timeout: float = 20.0,
    attempts: int = 5,
    pause: float = 0.5,
) -> Path:
    """Bring the file at `url` to `path`, over at most `attempts` connections; a right file there is left alone.

    A connection that is silent for `timeout` seconds counts as broken; the wait before the next one starts at `pause`
    seconds and doubles. A host that cannot be reached at all, or that says no (4xx), is not asked twice.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise BadOption(f"Only http and https addresses can be downloaded, not {url}.")
    transfer = _Transfer(url, path.with_name(f"{path.name}.part"), size, progress, timeout)
    try:
        with alone(path):
            if path.exists() and checksum.of(path) == checksum.hex:
                return path
            while True:
                resumed = transfer.part.exists()
                transfer.complete(attempts, pause)
                if (found := checksum.of(transfer.part)) == checksum.hex:
                    transfer.part.replace(path)
                    return path
                transfer.part.unlink()
                if not resumed:  # else bytes of an earlier call may be damaged or out of date: once more without them
                    raise BadFile(f"{url} is not the right file: its {checksum.kind} is {found}, not {checksum.hex}.")
    except OSError as error:  # of the disk: those of the network never get here
        raise BadFile(f"{path} cannot be written: {error.strerror or error}.") from error


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Let one process at a time work on `path`; the second is told so at once.

    The system frees the lock of a killed process; its empty file stays, for removed it could be locked twice.
    """
    with path.with_name(f"{path.name}.lock").open("ab") as lock:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            raise BadFile(f"Another process works on {path} now; wait until it has ended and try again.") from error
        yield


@dataclass
class _Transfer:
    """One file on its way, over several connections."""

    url: str
    part: Path
    size: int | None
    progress: Progress
    timeout: float
    tag: str | None = None  # of the version that the bytes in `part` belong to

    def complete(self, attempts: int, pause: float) -> None:
        for attempt in range(1, attempts + 1):
            try:
                self._connect(first=attempt == 1)
                return
            except _Broken as broken:
                reason = broken
            if attempt < attempts:
                time.sleep(pause * 2 ** (attempt - 1))
        raise Unreachable(f"{self.url} broke off {attempts} times ({reason}); what came is kept.") from reason

    def _connect(self, first: bool) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        if have == self.size:
            return
        with self._open(have, first) as reply:
            done, total = self._place(reply, have)
            with self.part.open("ab" if done else "wb") as out:
                for data in _chunks(reply):
                    done += len(data)
                    if done > (most := GUARD if total is None else total):
                        raise BadFile(f"{self.url} is not the right file: it has more than {most} bytes.")
                    out.write(data)
                    self.progress(done, total)
                out.flush()
                os.fsync(out.fileno())
        if total is not None and done < total:
            raise _Broken(f"{done} of {total} bytes came")

    def _open(self, have: int, first: bool) -> HTTPResponse:
        request = Request(self.url, headers={"User-Agent": "condense-once"})  # noqa: S310 (`download` checks the scheme)
        if have:
            request.add_header("Range", f"bytes={have}-")
        if have and self.tag:
            request.add_header("If-Range", self.tag)
        try:
            return ask(request, self.timeout)
        except HTTPError as error:
            error.close()
            answer = f"the server answered {error.code} {' '.join(error.reason.split())}"
            if error.code == 416:  # the part reaches beyond the end of the server's file
                self.part.unlink(missing_ok=True)
            if error.code == 416 or error.code >= 500:
                raise _Broken(answer) from error
            raise Unreachable(f"{self.url} is not to be had: {answer}.") from error
        except (OSError, HTTPException) as error:
            if first and isinstance(error, URLError):  # no connection; a host that was there before may come back
                raise Unreachable(f"{self.url} cannot be reached: {error.reason}.") from error
            raise _Broken(str(error)) from error

    def _place(self, reply: HTTPResponse, have: int) -> tuple[int, int | None]:
        """Where the first byte of a reply belongs, and how long the whole file is."""
        etag = reply.headers.get("ETag", "W/")  # weak ones do not stand for the very bytes (RFC 9110 §13.1.5)
        tag = reply.headers.get("Last-Modified") if etag.startswith("W/") else etag
        start, total = 0, reply.length
        if reply.status == 206:
            span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", reply.headers.get("Content-Range", ""))
            if span is None or int(span[1]) != have or (self.tag is not None and tag != self.tag):
                self.part.unlink(missing_ok=True)
                raise _Broken("the server's file changed")
            start, total = have, None if span[2] == "*" else int(span[2])
        if self.size is not None and total not in (None, self.size):
            raise BadFile(f"{self.url} is not the right file: it has {total} bytes, not {self.size}.")
        self.tag = tag
        return start, self.size if total is None else total


def _chunks(reply: HTTPResponse) -> Iterator[bytes]:
    try:
        while data := reply.read1(1 << 18):  # `read` would lose what came before a stall
            yield data
    except (OSError, HTTPException) as error:
        raise _Broken(str(error)) from error
