from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data import zca_store
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.train.recipe import Recipe

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without
torch.set_num_threads(1)  # test processes share the cores; threads that wait for each other are slower than one

settings.register_profile("any machine", deadline=None)  # a busy one takes longer than 200 ms now and then
settings.load_profile("any machine")

CLASSES = ("ant", "bee", "cat")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(autouse=True)
def zca_fits_apart(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """ZCA fits of tests are not kept among the user's datasets."""
    base, real = tmp_path_factory.getbasetemp(), zca_store.data_folder

    def folder(named: str | Path | None = None) -> Path:
        found = real(named)
        return found if found.is_relative_to(base) else base / "datasets"

    monkeypatch.setattr(zca_store, "data_folder", folder)


@pytest.fixture
def shared_data() -> Path:
    """Published sets and samples, in $CONDENSE_ONCE_SHARED or beside a checkout; without them a test is skipped."""
    named = os.environ.get("CONDENSE_ONCE_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared data in {folder}; say where with CONDENSE_ONCE_SHARED")
    return folder


@pytest.fixture
def brief() -> Iterator[str]:
    """The name of a protocol of a hundred epochs."""
    protocol = Protocol("brief-of-a-test", "100 epochs", Recipe(epochs=100), Recipe(epochs=100))
    with PROTOCOLS.registered(protocol):
        yield protocol.name


def tiny_source(classes: int = 3, each: int = 20, side: int = 8, channels: int = 3) -> Source:
    """Classes that can be told apart: each has a pattern of its own under noise."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(classes), each))
    patterns = rng.integers(0, 156, (classes, channels, side, side))
    images = (patterns[labels] + rng.integers(0, 100, (len(labels), channels, side, side))).astype(np.uint8)
    names = tuple(f"class {label}" for label in range(classes))
    return Source("tiny", names, (0.5,) * channels, (0.25,) * channels, {"train": ArraySplit(images, labels)})


@pytest.fixture
def source() -> Source:
    return tiny_source()


@pytest.fixture
def make_source() -> Callable[..., Source]:
    return tiny_source


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def pixel_set(rng: np.random.Generator) -> CondensedSet:
    """Three classes, two images each in no particular order, factor 2."""
    return CondensedSet.from_mosaics(
        rng.integers(0, 256, (6, 3, 8, 8), dtype=np.uint8),
        np.array([2, 0, 1, 1, 0, 2]),
        factor=2,
        space=Space("pixels", (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)),
        classes=CLASSES,
        name="tiny",
        provenance={"made by": "a test"},
    )


@pytest.fixture
def soft_set(rng: np.random.Generator) -> CondensedSet:
    """Normalised floats with soft labels, values far outside what a pixel can reach."""
    soft = rng.normal(size=(5, 3)).astype(np.float32)
    return CondensedSet.from_mosaics(
        (7 * rng.normal(size=(5, 1, 6, 6))).astype(np.float32),
        soft.argmax(1),
        factor=1,
        space=Space("normalised", (0.3,), (0.4,)),
        classes=CLASSES,
        soft_labels=soft,
        name="soft",
    )


@dataclass
class Site:
    """Answers requests one after the other as planned, the last answer for ever; remembers what it was asked."""

    url: str
    plan: list[Answer] = field(default_factory=list)
    asked: list[Message] = field(default_factory=list)  # headers
    sent: int = 0  # bytes, where an answer counts them
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def ranges(self) -> list[str | None]:
        return [headers["Range"] for headers in self.asked]

    def silence(self, handler: Handler) -> None:
        self.over.wait(5)

    def status(self, code: int) -> Answer:
        return lambda handler: handler.send_error(code)

    def redirect(self, target: str) -> Answer:
        def answer(handler: Handler) -> None:
            handler.send_response(302)
            handler.send_header("Location", target)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        return answer


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        answer = self.site.plan[min(len(self.site.asked), len(self.site.plan) - 1)]
        self.site.asked.append(self.headers)
        answer(self)

    def log_message(self, *_: object) -> None:
        pass


Answer = Callable[[Handler], None]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A real server on loopback."""
    monkeypatch.setenv("no_proxy", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.site = Site(f"http://127.0.0.1:{server.server_port}/file")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Handler.site
    Handler.site.over.set()
    server.shutdown()
    thread.join()
    server.server_close()
