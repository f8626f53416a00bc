from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class RangeHandler(SimpleHTTPRequestHandler):
    """Files of a folder, by range requests; counts what it sends of sets."""

    sent = 0

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path.partition("?")[0]))
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        if not asked or not path.is_file():
            super().do_GET()
            return
        body = path.read_bytes()
        start, stop = int(asked[1]), min(int(asked[2]) + 1, len(body))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(body)}")
        self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        self.wfile.write(body[start:stop])
        type(self).sent += stop - start

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def folder_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path, Any]]:
    """A server on loopback: its address, its folder, and the handler that counts."""
    monkeypatch.setenv("no_proxy", "*")
    handler: Any = type("Handler", (RangeHandler,), {"sent": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", tmp_path, handler
    server.shutdown()
    thread.join()
    server.server_close()
