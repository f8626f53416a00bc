"""Asking a web server for something, with the one rule that downloads and devices share: never led away from the web."""

from __future__ import annotations

from http.client import HTTPMessage, HTTPResponse
from typing import IO, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener


def ask(request: Request, timeout: float) -> HTTPResponse:
    """Send a request to an http(s) address and follow redirects to others, but not from https back to http."""
    return cast(HTTPResponse, build_opener(_Redirects).open(request, timeout=timeout))


class _Redirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in ("https", req.type):
            raise HTTPError(newurl, code, f"{msg}, to {newurl}, which is not followed", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
