"""HTTP requests of downloads and of the device reader: they end at a deadline, and redirects never leave http(s)."""

from __future__ import annotations

import time
from functools import partial
from http.client import HTTPConnection, HTTPMessage, HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from typing import IO, Any, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import AbstractHTTPHandler, HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from condense_once.text import short_line


class DeadlineExceeded(TimeoutError):
    """A response that was not complete in time, however steadily its bytes came in."""


def ask(request: Request, timeout: float, deadline: float) -> HTTPResponse:
    """Send a request and follow redirects to http(s), but never from https back to http.

    Neither silence of `timeout` seconds is accepted nor, in this call or in reading the response later on, anything after
    `deadline`, a time of `time.monotonic`.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise DeadlineExceeded
    opener = build_opener(_Redirects, _Http(timeout, deadline), _Https(timeout, deadline))
    return cast(HTTPResponse, opener.open(request, timeout=min(timeout, left)))


class _Redirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in ("https", req.type):
            target = short_line(newurl, 80)
            raise HTTPError(newurl, code, f"{short_line(msg, 30)} to {target}, which is not followed", headers, fp)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        fp.close()  # the base class would read the page that comes with a redirect, however long
        return request


class _WithDeadline(AbstractHTTPHandler):
    def __init__(self, timeout: float, deadline: float) -> None:
        super().__init__()
        self._response = partial(_TimedResponse, timeout=timeout, deadline=deadline)

    def do_open(self, http_class: Any, req: Request, **http_conn_args: Any) -> HTTPResponse:
        def connect(host: str, **options: Any) -> HTTPConnection:
            connection: HTTPConnection = http_class(host, **options)
            connection.response_class = self._response  # type: ignore[assignment]
            return connection

        return super().do_open(connect, req, **http_conn_args)


class _Http(_WithDeadline, HTTPHandler):
    pass


class _Https(_WithDeadline, HTTPSHandler):
    pass


class _TimedResponse(HTTPResponse):
    """A response whose status line, headers and body are all due by a deadline."""

    def __init__(self, sock: socket, *arguments: Any, timeout: float, deadline: float, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = BufferedReader(_TimedStream(sock, self.fp.detach(), timeout, deadline))


class _TimedStream(RawIOBase):
    def __init__(self, sock: socket, stream: RawIOBase, timeout: float, deadline: float) -> None:
        self._socket, self._stream, self._timeout, self._deadline = sock, stream, timeout, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded
        self._socket.settimeout(min(self._timeout, left))
        try:
            return cast(int | None, self._stream.readinto(buffer))
        except TimeoutError:
            if left <= self._timeout:
                raise DeadlineExceeded from None
            raise

    def close(self) -> None:
        self._stream.close()
        super().close()
