"""HTTP requests of downloads and of the device reader; redirects never leave http(s)."""

from __future__ import annotations

from http.client import HTTPMessage, HTTPResponse
from typing import IO, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from condense_once.text import short_line


def ask(request: Request, timeout: float) -> HTTPResponse:
    """Send a request and follow redirects to http(s), but never from https back to http."""
    return cast(HTTPResponse, build_opener(_Redirects).open(request, timeout=timeout))


class _Redirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in ("https", req.type):
            target = short_line(newurl, 80)
            raise HTTPError(newurl, code, f"{short_line(msg, 30)} to {target}, which is not followed", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
