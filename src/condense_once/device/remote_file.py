"""A file on a web server, by ranges of bytes: fetched when they are asked for, and only once.

Every answer is held against the first one: the same length, the same version, exactly the bytes asked for. What the bytes
say is checked by their readers, against the checksums in the file.
"""

from __future__ import annotations

import re
from http.client import HTTPException, HTTPResponse
from urllib.error import HTTPError, URLError
from urllib.request import Request

from condense_once.errors import BadFile, BadOption
from condense_once.web import ask

HEAD = 2**16  # bytes of the first request: the header of most sets, and a small one's first patches
SMALL = 8 * 2**20  # up to this a file is taken whole, if its server sends no parts
VERSION = ("ETag", "Last-Modified")  # what changes with the file, of those that a server sends


class WebFile:
    """Byte ranges of the file at an address; what has come is kept, so that taking more fetches only what is new."""

    def __init__(self, url: str, *, timeout: float = 20.0) -> None:
        if not re.match("https?://", url, re.IGNORECASE) or not url.isprintable():
            raise BadOption(f"Only http and https addresses can be opened, not {url!r}.")
        self.name = url
        self._timeout = timeout
        self.size = 0
        self._spans: dict[int, bytes] = {}  # where each begins, and its bytes
        with self._ask(0, HEAD) as reply:
            self._version = _version(reply)
            self.in_parts = reply.status == 206
            if self.in_parts:
                start, stop, self.size = self._place(reply)
                if (start, stop) != (0, min(HEAD, self.size)):
                    raise BadFile(f"{url} came wrong: the server sent other bytes than were asked for.")
                self._spans[0] = self._body(reply, stop)
            else:
                self._spans[0] = self._whole(reply)
                self.size = len(self._spans[0])

    def read(self, start: int, stop: int) -> memoryview:
        begin = max((b for b, span in self._spans.items() if b <= start <= b + len(span)), default=start)
        span = self._spans.get(begin, b"")
        if begin + len(span) < stop:
            span += self._fetch(begin + len(span), stop)
            self._spans[begin] = span
        return memoryview(span)[start - begin : stop - begin]

    def _fetch(self, start: int, stop: int) -> bytes:
        with self._ask(start, stop) as reply:
            if _version(reply) != self._version:
                raise BadFile(f"{self.name} changed while it was read; open it again.")
            if reply.status != 206:
                raise BadFile(f"{self.name} is no longer sent in parts; open it again.")
            begin, end, size = self._place(reply)
            if size != self.size:
                raise BadFile(
                    f"{self.name} changed while it was read, from {self.size:,} bytes to {size:,}; open it again."
                )
            if (begin, end) != (start, stop):
                raise BadFile(f"{self.name} came wrong: the server sent other bytes than were asked for.")
            return self._body(reply, stop - start)

    def _ask(self, start: int, stop: int) -> HTTPResponse:
        headers = {"User-Agent": "condense-once", "Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        try:
            request = Request(self.name, headers=headers)  # noqa: S310 (the scheme was checked)
            return ask(request, self._timeout)
        except HTTPError as error:
            error.close()
            if error.code == 416:
                raise BadFile(f"{self.name} is shorter than it should be, or empty.") from error
            reason = " ".join(str(error.reason).split())
            raise BadFile(f"{self.name} is not to be had: the server answered {error.code} {reason}.") from error
        except (OSError, HTTPException, ValueError) as error:
            cause = error.reason if isinstance(error, URLError) else error
            raise BadFile(f"{self.name} cannot be reached: {cause or type(cause).__name__}.") from error

    def _place(self, reply: HTTPResponse) -> tuple[int, int, int]:
        """The bytes that an answer says it holds, `[start, stop)`, and the length of the file."""
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", reply.headers.get("Content-Range", ""), re.ASCII)
        if found is None:
            raise BadFile(f"{self.name} came wrong: the server does not say which of how many bytes it sends.")
        return int(found[1]), int(found[2]) + 1, int(found[3])

    def _whole(self, reply: HTTPResponse) -> bytes:
        """All of a small file, from a server that sends no parts."""
        length = reply.length  # unknown to some servers; then only the file itself says whether it is whole
        if length is None or length <= SMALL:
            data = self._body(reply, SMALL + 1 if length is None else length)
            if len(data) <= SMALL:
                return data
        raise BadFile(
            f"{self.name} has more than {SMALL:,} bytes, and its server does not send parts of it (range requests);"
            " download it first or use another server."
        )

    def _body(self, reply: HTTPResponse, length: int) -> bytes:
        expected = reply.length
        if reply.headers.get("Content-Encoding", "identity") != "identity" or expected not in (None, length):
            raise BadFile(f"{self.name} came wrong: the server packed it, or sends another length than it says.")
        try:
            data = reply.read(length)
        except (OSError, HTTPException) as error:
            raise BadFile(f"{self.name} broke off: {str(error) or type(error).__name__}; try again.") from error
        if len(data) < length and (expected is not None or self.in_parts):
            raise BadFile(f"{self.name} broke off: {len(data):,} of {length:,} bytes came; try again.")
        return data


def _version(reply: HTTPResponse) -> tuple[str | None, ...]:
    return tuple(reply.headers.get(name) for name in VERSION)
