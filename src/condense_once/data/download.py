"""Large files over unreliable networks: resumable, verified, never half a file under its name.

A download is kept in `<path>.part` until it is complete and its checksum matches; only then is it renamed. The part
survives errors, Ctrl-C and power cuts, and the next call requests only the rest.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request

from condense_once.errors import BadFile, BadOption, CondenseOnceError, InaccessibleFile
from condense_once.files import exclusive
from condense_once.text import short_line
from condense_once.web import DeadlineExceeded, ask

ByteProgress = Callable[[int, int | None], None]  # bytes done, total bytes if known


class DownloadError(InaccessibleFile):
    """A file that its server does not deliver; a mirror may still work."""


class _ConnectionLost(Exception):
    """A connection that ended too early and is worth retrying."""


@dataclass(frozen=True)
class Checksum:
    """The expected digest of a file."""

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
    progress: ByteProgress = lambda _done, _total: None,
    timeout: float = 20.0,
    attempts: int = 5,
    pause: float = 0.5,
    max_bytes: int = 2**34,
    max_seconds: float = 7200.0,
) -> Path:
    """Download `url` to `path` over at most `attempts` connections; a valid file already there is kept.

    A connection that is silent for `timeout` seconds counts as lost; the wait before the next one starts at `pause`
    seconds and doubles. A host that is unreachable or refuses (4xx) is not retried. Where `size` is not known, at most
    `max_bytes` are accepted. After `max_seconds` the call ends, however steadily bytes come in; the next one resumes.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise BadOption(f"`url` must be an http or https address, not {url}.")
    part, most = path.with_name(f"{path.name}.part"), max_bytes if size is None else size
    transfer = _Transfer(url, part, size, most, progress, timeout, time.monotonic() + max_seconds)
    try:
        with exclusive(path):
            if path.exists() and checksum.of(path) == checksum.hex:
                return path
            while True:
                resumed = transfer.part.exists()
                transfer.complete(attempts, pause)
                if (found := checksum.of(transfer.part)) == checksum.hex:
                    transfer.part.replace(path)
                    return path
                transfer.part.unlink()
                if not resumed:  # else the bytes of an earlier call may be damaged or stale: retry from scratch
                    raise BadFile(
                        f"{url} is not the expected file: its {checksum.kind} is {found}, not {checksum.hex}."
                    )
    except CondenseOnceError:
        raise
    except DeadlineExceeded as error:
        raise DownloadError(
            f"{url} is too slow: not complete after {max_seconds:g} seconds; try again to resume."
        ) from error
    except OSError as error:  # of the disk: network errors never get here
        raise InaccessibleFile(f"{path} cannot be written: {error.strerror or error}.") from error


@dataclass
class _Transfer:
    """The transfer of one file, over several connections."""

    url: str
    part: Path
    size: int | None
    most: int  # bytes to accept
    progress: ByteProgress
    timeout: float
    deadline: float
    tag: str | None = None  # version of the bytes in `part`: an ETag or a date

    def complete(self, attempts: int, pause: float) -> None:
        for attempt in range(1, attempts + 1):
            try:
                self._connect(first=attempt == 1)
                return
            except _ConnectionLost as lost:
                reason = lost
            if attempt < attempts:
                time.sleep(pause * 2 ** (attempt - 1))
        raise DownloadError(f"{self.url} broke off {attempts} times ({reason}); try again later to resume.") from reason

    def _connect(self, first: bool) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        if have == self.size:
            return
        with self._open(have, first) as reply:
            done, total = self._place(reply, have)
            with self.part.open("ab" if done else "wb") as out:
                for data in _chunks(reply):
                    done += len(data)
                    if done > (most := self.most if total is None else min(self.most, total)):
                        raise BadFile(f"{self.url} is not the expected file: it has more than {most} bytes.")
                    out.write(data)
                    self.progress(done, total)
                out.flush()
                os.fsync(out.fileno())
        if total is not None and done < total:
            raise _ConnectionLost(f"{done} of {total} bytes received")

    def _open(self, have: int, first: bool) -> HTTPResponse:
        request = Request(self.url, headers={"User-Agent": "condense-once"})  # noqa: S310 (`download` checks the scheme)
        if have:
            request.add_header("Range", f"bytes={have}-")
        if have and self.tag:
            request.add_header("If-Range", self.tag)
        try:
            return ask(request, self.timeout, self.deadline)
        except DeadlineExceeded:
            raise
        except HTTPError as error:
            error.close()
            answer = f"the server answered {error.code} {short_line(error.reason)}"
            if error.code == 416:  # the part is longer than the server's file
                self.part.unlink(missing_ok=True)
            if error.code == 416 or error.code >= 500:
                raise _ConnectionLost(answer) from error
            raise DownloadError(f"{self.url} is not available: {answer}.") from error
        except (OSError, HTTPException) as error:
            if isinstance(error, URLError) and isinstance(error.reason, DeadlineExceeded):
                raise error.reason from error
            if first and isinstance(error, URLError):  # a host that answered before may come back
                raise DownloadError(f"{self.url} cannot be reached: {short_line(error.reason)}.") from error
            raise _ConnectionLost(short_line(error)) from error

    def _place(self, reply: HTTPResponse, have: int) -> tuple[int, int | None]:
        """The offset of the reply's first byte in the file, and the total size."""
        etag = reply.headers.get("ETag", "W/")  # weak ETags do not identify exact bytes (RFC 9110 §13.1.5)
        tag = reply.headers.get("Last-Modified") if etag.startswith("W/") else etag
        start, total = 0, reply.length
        if reply.status == 206:
            span = re.fullmatch(
                r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", reply.headers.get("Content-Range", ""), re.ASCII
            )
            if span is None or int(span[1]) != have or (self.tag is not None and tag != self.tag):
                self.part.unlink(missing_ok=True)
                raise _ConnectionLost("the server's file changed")
            start, total = have, None if span[2] == "*" else int(span[2])
        if self.size is not None and total not in (None, self.size):
            raise BadFile(f"{self.url} is not the expected file: it has {total} bytes, not {self.size}.")
        self.tag = tag
        return start, self.size if total is None else total


def _chunks(reply: HTTPResponse) -> Iterator[bytes]:
    try:
        while data := reply.read1(1 << 18):  # `read` would lose the bytes before a stall
            yield data
    except DeadlineExceeded:
        raise
    except (OSError, HTTPException) as error:
        raise _ConnectionLost(short_line(error)) from error
