"""A file on a web server, read by HTTP range requests: each byte is fetched on demand and only once.

Every response is checked against the first: same length, same version, exactly the bytes requested. The content is checked by
the reader, against the checksums in the file. How many bytes are fetched and how long it takes is limited here, because
everything else, even the size of the header, is the server's word.
"""

from __future__ import annotations

import re
import time
from http.client import HTTPException, HTTPResponse
from urllib.error import HTTPError, URLError
from urllib.request import Request

from condense_once.errors import BadFile, BadOption
from condense_once.text import short_line
from condense_once.web import DeadlineExceeded, ask

HEAD = 4096  # bytes of the first request: the header of a layered file
AHEAD = (
    2**16
)  # bytes of the first two, if the header is longer: that of most sets, and the first patches of a small one
SMALL = 8 * 2**20  # bytes up to which a file is downloaded whole if its server does not support ranges
VERSION = ("ETag", "Last-Modified")  # headers that identify the version of a file


class RemoteFile:
    """Byte ranges of the file at a URL; fetched bytes are cached, so that a larger subset fetches only what is new.

    At most `max_bytes` are fetched in all. Between two calls of `restart_clock`, fetching may take `max_seconds`.
    """

    def __init__(
        self, url: str, *, timeout: float = 20.0, max_bytes: int = 256 * 2**20, max_seconds: float = 300.0
    ) -> None:
        for name, limit in (("timeout", timeout), ("max_bytes", max_bytes), ("max_seconds", max_seconds)):
            if not limit > 0:
                raise BadOption(f"`{name}` must be positive, not {limit}.")
        if not re.match("https?://", url, re.IGNORECASE) or not url.isprintable():
            raise BadOption(f"A URL must start with http:// or https://, not {url!r}.")
        self.name = url
        self._timeout, self._max_bytes, self._max_seconds = timeout, max_bytes, max_seconds
        self.restart_clock()
        self.size = 0
        self._spans: dict[int, bytes] = {}  # fetched bytes by their offset
        head = min(HEAD, max_bytes)
        with self._request(0, head) as response:
            self._version = _version(response)
            self.supports_ranges = response.status == 206
            if self.supports_ranges:
                start, stop, self.size = self._content_range(response)
                if (start, stop) != (0, min(head, self.size)):
                    raise BadFile(f"{url}: invalid response, the server sent other bytes than requested.")
                self._spans[0] = self._body(response, stop)
            else:
                self._spans[0] = self._whole(response)
                self.size = len(self._spans[0])
        if 8 + int.from_bytes(self._spans[0][:8], "little") > len(self._spans[0]):
            self.read(0, min(AHEAD, self.size, max_bytes))

    def restart_clock(self) -> None:
        """Allow `max_seconds` from now on."""
        self._deadline = time.monotonic() + self._max_seconds

    def read(self, start: int, stop: int) -> memoryview:
        begin = max((b for b, span in self._spans.items() if b <= start <= b + len(span)), default=start)
        span = self._spans.get(begin, b"")
        if begin + len(span) < stop:
            span += self._fetch(begin + len(span), stop)
            self._spans[begin] = span
        return memoryview(span)[start - begin : stop - begin]

    def _fetch(self, start: int, stop: int) -> bytes:
        if sum(map(len, self._spans.values())) + stop - start > self._max_bytes:
            raise BadOption(
                f"{self.name}: reading this takes {stop - start:,} bytes more, and `max_bytes` allows {self._max_bytes:,} in"
                " all; take fewer patches, or raise it if you trust the server."
            )
        with self._request(start, stop) as response:
            if _version(response) != self._version:
                raise BadFile(f"{self.name} changed during reading; open it again.")
            if response.status != 206:
                raise BadFile(f"{self.name}: the server stopped supporting range requests; open it again.")
            begin, end, size = self._content_range(response)
            if size != self.size:
                raise BadFile(
                    f"{self.name} changed during reading, from {self.size:,} bytes to {size:,}; open it again."
                )
            if (begin, end) != (start, stop):
                raise BadFile(f"{self.name}: invalid response, the server sent other bytes than requested.")
            return self._body(response, stop - start)

    def _request(self, start: int, stop: int) -> HTTPResponse:
        headers = {"User-Agent": "condense-once", "Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        try:
            request = Request(self.name, headers=headers)  # noqa: S310 (the scheme was checked)
            return ask(request, self._timeout, self._deadline)
        except DeadlineExceeded as error:
            raise self._too_slow() from error
        except HTTPError as error:
            error.close()
            if error.code == 416:
                raise BadFile(f"{self.name} is shorter than it should be, or empty.") from error
            answer = f"{error.code} {short_line(error.reason)}"
            raise BadFile(f"{self.name} is not available: the server answered {answer}.") from error
        except (OSError, HTTPException, ValueError) as error:
            cause = error.reason if isinstance(error, URLError) else error
            if isinstance(cause, DeadlineExceeded):
                raise self._too_slow() from error
            raise BadFile(f"{self.name} cannot be reached: {short_line(cause) or type(cause).__name__}.") from error

    def _content_range(self, response: HTTPResponse) -> tuple[int, int, int]:
        """The byte range of a response, `[start, stop)`, and the length of the file."""
        found = re.fullmatch(
            r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", response.headers.get("Content-Range", ""), re.ASCII
        )
        if found is None:
            raise BadFile(f"{self.name}: invalid response, the Content-Range header is missing or malformed.")
        return int(found[1]), int(found[2]) + 1, int(found[3])

    def _whole(self, response: HTTPResponse) -> bytes:
        """All of a small file, from a server without range requests."""
        most = min(SMALL, self._max_bytes)
        # Some servers do not send a length; then only the checksums tell whether the file is complete
        length = response.length
        if length is None or length <= most:
            data = self._body(response, most + 1 if length is None else length)
            if len(data) <= most:
                return data
        raise BadFile(
            f"{self.name} has more than {most:,} bytes and its server does not support range requests; download it first or"
            " use another server."
        )

    def _body(self, response: HTTPResponse, length: int) -> bytes:
        expected = response.length
        if response.headers.get("Content-Encoding", "identity") != "identity" or expected not in (None, length):
            raise BadFile(f"{self.name}: invalid response, compressed or of another length than announced.")
        try:
            data = response.read(length)
        except DeadlineExceeded as error:
            raise self._too_slow() from error
        except (OSError, HTTPException) as error:
            reason = short_line(error) or type(error).__name__
            raise BadFile(f"{self.name}: connection lost ({reason}); try again.") from error
        if len(data) < length and (expected is not None or self.supports_ranges):
            raise BadFile(f"{self.name}: connection lost after {len(data):,} of {length:,} bytes; try again.")
        return data

    def _too_slow(self) -> BadFile:
        return BadFile(
            f"{self.name} is too slow: not complete after {self._max_seconds:g} seconds; try again, or raise `max_seconds`."
        )


def _version(response: HTTPResponse) -> tuple[str | None, ...]:
    return tuple(response.headers.get(name) for name in VERSION)
