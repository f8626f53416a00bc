from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.studies.engines import Outcome, perform
from condense_once.studies.grid import StudyInput
from condense_once.studies.jobs import Job
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train import cost
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.recipe import Recipe

PLAIN = ComputeConfig("float32", "off")
TINY = Protocol("tiny", "for tests", Recipe(epochs=5, batch=8), Recipe(epochs=5, batch=8))


def tiny_input(name: str = "tiny", seed: int = 0) -> StudyInput:
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
    return StudyInput(data, Source("tiny-test", data.classes, (0.5,) * 3, (0.25,) * 3, splits))


class InProcessEngine:
    """Runs jobs in this process, one at a time; `spoil` may raise for some of them."""

    slots = 1

    def __init__(self, inputs: Mapping[str, StudyInput], spoil: Callable[[Job], None] = lambda _: None) -> None:
        self._inputs = list(inputs.values())
        self.spoil = spoil
        self._queue: deque[Job] = deque()
        self.done: list[Job] = []

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def finished(self, seconds: float) -> Sequence[Outcome]:
        if not self._queue:
            return []
        job = self._queue.popleft()
        self.done.append(job)
        try:
            self.spoil(job)
        except ValueError as error:
            return [Outcome(job, None, str(error), 0.0)]
        return [perform(job, self._inputs, PLAIN)]

    def close(self) -> None:
        self._queue.clear()


@pytest.fixture(autouse=True)
def no_timed_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates of the time left need not be good."""
    monkeypatch.setattr(cost, "MEASURE", 0.0)


@pytest.fixture
def make_input() -> Callable[..., StudyInput]:
    return tiny_input


@pytest.fixture
def inputs() -> dict[str, StudyInput]:
    return {"tiny": tiny_input()}


@pytest.fixture
def make_engine(inputs: dict[str, StudyInput]) -> Callable[..., InProcessEngine]:
    return partial(InProcessEngine, inputs)


@pytest.fixture
def study() -> Iterator[Study]:
    with PROTOCOLS.registered(TINY):
        yield Study(
            "small",
            "a small study",
            sets=("tiny",),
            rules=("random", "yoco"),
            sizes=("1", "2"),
            nets=("convnet-d1-w8",),
            scored_by="convnet-d1-w8",
            epochs=("0-1",),
            scoring_epochs=3,
            protocol=TINY.name,
            repeats=2,
            scoring_runs=2,
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.sqlite")
