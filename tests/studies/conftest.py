from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.studies.engines import Done, perform
from condense_once.studies.grid import Subject
from condense_once.studies.jobs import Job
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.hardware import ComputeConfig
from condense_once.train.recipe import Recipe

PLAIN = ComputeConfig("float32", "off")
TINY = Protocol("tiny", "for tests", Recipe(epochs=5, batch=8), Recipe(epochs=5, batch=8))


def tiny_subject(name: str = "tiny", seed: int = 0) -> Subject:
    """Twelve patches of 8×8 in three classes that differ in brightness, and images to test on."""
    rng = np.random.default_rng(seed)

    def images(labels: np.ndarray) -> np.ndarray:
        bright = 60 * labels[:, None, None, None] + 40
        return (bright + rng.integers(0, 40, (len(labels), 3, 8, 8))).astype(np.uint8)

    labels = np.repeat(np.arange(3), 4)
    space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
    data = CondensedSet.from_mosaics(
        images(labels), labels, factor=1, space=space, classes=("dark", "grey", "light"), name=name
    )
    test = np.arange(30) % 3
    splits = {"test": ArraySplit(images(test), test)}
    return Subject(data, Source("tiny-test", data.classes, (0.5,) * 3, (0.25,) * 3, splits))


class HereEngine:
    """Does jobs in this process, one at a time; `spoil` may raise for some of them."""

    slots = 1

    def __init__(self, subjects: Mapping[str, Subject], spoil: Callable[[Job], None] = lambda _: None) -> None:
        self._subjects = list(subjects.values())
        self.spoil = spoil
        self._waiting: deque[Job] = deque()
        self.done: list[Job] = []

    def submit(self, job: Job) -> None:
        self._waiting.append(job)

    def finished(self, seconds: float) -> Sequence[Done]:
        if not self._waiting:
            return []
        job = self._waiting.popleft()
        self.done.append(job)
        try:
            self.spoil(job)
        except ValueError as error:
            return [Done(job, None, str(error), 0.0)]
        return [perform(job, self._subjects, PLAIN)]

    def close(self) -> None:
        self._waiting.clear()


@pytest.fixture
def make_subject() -> Callable[..., Subject]:
    return tiny_subject


@pytest.fixture
def subjects() -> dict[str, Subject]:
    return {"tiny": tiny_subject()}


@pytest.fixture
def make_engine(subjects: dict[str, Subject]) -> Callable[..., HereEngine]:
    return partial(HereEngine, subjects)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setitem(PROTOCOLS._entries, TINY.name, TINY)
    return Study(
        "small",
        "a small study",
        sets=("tiny",),
        rules=("random", "yoco"),
        sizes=("1", "2"),
        nets=("convnet-d1-w8",),
        scored_by="convnet-d1-w8",
        epochs=("0-1",),
        training=3,
        protocol=TINY.name,
        repeats=2,
        dynamics=2,
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.sqlite")
