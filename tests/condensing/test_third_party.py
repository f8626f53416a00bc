"""A condenser of another distribution that matches nothing: its images are the centroids of k-means clusters.

It brings its own work items, soft labels, ranking and time budget; everything else comes from the runner.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from condense_once import registry
from condense_once.cli import main
from condense_once.condensed.bundled import load
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.condenser import Condenser, State, Task
from condense_once.condensing.registry import CONDENSERS, CondenserInfo
from condense_once.condensing.runner import condense
from condense_once.condensing.stop_signals import Interrupted
from condense_once.data.source import Source
from condense_once.data.split import rows_by_class
from condense_once.errors import BadOption
from condense_once.kmeans import k_means


class Centroids(Condenser):
    """One work item per class: the centroids of its pixels."""

    def __init__(self, task: Task, clusters: int) -> None:
        self._task, self._clusters = task, clusters
        source = task.source
        self._rows = rows_by_class(np.asarray(source.train.labels), len(source.classes))
        self._images = np.zeros((len(source.classes), clusters, *source.train.shape), np.float32)

    @property
    def total(self) -> int:
        return len(self._rows)

    @property
    def recipe_json(self) -> Mapping[str, Any]:
        return {"clusters": self._clusters}

    def initialise(self) -> None:
        self._images[:] = 0.5

    def advance(self) -> float:
        pixels = self._task.source.train.take(self._rows[self.done]) / np.float32(255)
        rng = np.random.default_rng([self._task.config.seed, self.done])
        found = k_means(pixels.reshape(len(pixels), -1), self._clusters, rng)
        self._images[self.done] = found.centres.reshape(self._images.shape[1:])
        self.done += 1
        return float(found.distances.mean())

    def state(self) -> State:
        return {"images": self._images}

    def restore(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        self._images[:], self.done = state["images"], done

    def fit_to_time(self, seconds: float) -> str:
        self.__init__(self._task, 1 if seconds < 60 else self._clusters)  # type: ignore[misc]
        return f"Fitted to {seconds:.0f} s: {self._clusters} clusters per class."

    def result(self) -> CondensedSet:
        classes = self._task.source.classes
        order = np.arange(len(classes) * self._clusters).reshape(len(classes), -1).T.ravel()  # the classes take turns
        images = (self._images.reshape(-1, *self._images.shape[2:]) * 255).round().astype(np.uint8)
        labels = np.repeat(np.arange(len(classes)), self._clusters)
        return CondensedSet(
            cells=images[order],
            labels=labels[order],
            classes=classes,
            size=images.shape[2:],
            factor=1,
            space=Space("pixels", self._task.source.mean, self._task.source.std),
            origin=order,
            soft_labels=np.float32(0.1) + np.float32(0.7) * np.eye(len(classes), dtype=np.float32)[labels[order]],
            ranking=Ranking("cluster-size"),
            provenance={"clusters": self._clusters},
        )


def build(task: Task, recipe: Mapping[str, Any] | None) -> Centroids:
    unknown = set(task.config.overrides) - {"clusters"}
    if unknown:
        raise BadOption(f"centroids has no field {unknown.pop()!r}.")
    asked = int(task.config.overrides.get("clusters", task.config.ipc))
    return Centroids(task, asked if recipe is None else recipe["clusters"])


CENTROIDS = CondenserInfo("centroids", "averages of k-means clusters", build)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The condenser as another distribution would register it: by an entry point."""
    module = ModuleType("somebody_elses")
    module.CENTROIDS = CENTROIDS  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "somebody_elses", module)
    point = EntryPoint("centroids", "somebody_elses:CENTROIDS", "condense_once.condensers")
    group = point.group
    monkeypatch.setattr(registry, "entry_points", lambda **wanted: [point] if wanted["group"] == group else [])
    monkeypatch.setattr(CONDENSERS, "_plugins_loaded", False)
    entries = dict(CONDENSERS._entries)
    yield
    CONDENSERS._entries = entries


class Events(Callback):
    def __init__(self, interrupt_at: int | None = None) -> None:
        self.seen: list[str] = []
        self._interrupt_at = interrupt_at

    def on_item_end(self, progress: RunProgress) -> None:
        if progress.done == self._interrupt_at:
            signal.raise_signal(signal.SIGTERM)

    def on_step_end(self, progress: RunProgress) -> None:
        self.seen.append(f"step {progress.steps}: {progress.loss:.2f}")

    def on_iteration_end(self, progress: RunProgress) -> None:
        self.seen.append(f"iteration {progress.iteration}")

    def on_checkpoint(self, progress: RunProgress) -> None:
        self.seen.append("checkpoint")

    def on_run_end(self, progress: RunProgress) -> None:
        self.seen.append(f"end of {progress.total}")


def test_it_makes_a_set_with_soft_labels_a_ranking_and_how_it_was_made(source: Source) -> None:
    made = condense(source, method="centroids", ipc=3)
    assert (made.name, len(made), made.factor) == ("tiny-centroids-ipc3", 9, 1)
    assert made.ranking == Ranking("cluster-size")
    assert made.soft_labels is not None
    assert made.labels.tolist() == [0, 1, 2] * 3
    assert made.provenance["recipe"] == {"clusters": 3}
    assert made.provenance["config"]["seed"] == 0
    assert [step for step, _ in made.provenance["loss"]] == [1, 2, 3]
    first = source.train.take(np.flatnonzero(np.asarray(source.train.labels) == 0)).mean(0)
    one = condense(source, method="centroids", ipc=1)
    assert np.abs(one.cells[0] - first).max() <= 0.5


def test_callbacks_follow_it(source: Source) -> None:
    events = Events()
    condense(source, method="centroids", ipc=2, callbacks=[events])
    assert [event.partition(":")[0] for event in events.seen] == [
        *("step 1", "iteration 1", "step 2", "iteration 2", "step 3", "iteration 3", "end of 3"),
    ]


def test_it_is_saved_by_a_signal_and_resumed_to_the_same_bits(source: Source, tmp_path: Path) -> None:
    path, whole = tmp_path / "run.checkpoint", condense(source, method="centroids", ipc=2)
    events = Events(interrupt_at=2)
    with pytest.raises(Interrupted, match=r"Stopped at 66\.7% and saved to"):
        condense(source, method="centroids", ipc=2, checkpoint=path, callbacks=[events])
    assert "checkpoint" in events.seen
    with pytest.raises(BadOption, match="was started with `ipc` = 2, not 3"):
        condense(source, method="centroids", ipc=3, checkpoint=path, resume=True)
    resumed = condense(source, method="centroids", ipc=2, checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, whole.cells)
    assert resumed.provenance["loss"] == whole.provenance["loss"]


def test_it_is_fitted_to_a_time_budget(source: Source) -> None:
    decisions: list[str] = []
    made = condense(source, method="centroids", ipc=4, minutes=0.5, notify=decisions.append)
    assert len(made) == 3
    assert "1 clusters per class" in decisions[0]


def test_the_command_line_runs_it(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("tiny.npz", images=source.train.take(slice(None)), labels=np.asarray(source.train.labels))
    words = [
        "condense",
        "tiny.npz",
        "--method",
        "centroids",
        "--ipc",
        "2",
        "--override",
        "clusters=5",
        "-o",
        "mine.safetensors",
    ]
    monkeypatch.setattr(sys, "argv", ["condense-once", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    made = load("mine.safetensors")
    assert len(made) == 15
    assert json.loads(json.dumps(made.provenance["recipe"])) == {"clusters": 5}


class Staged(Centroids):
    """Ten work items of preparation of a second each, then steps of a tenth of a second, by a clock of its own."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, 1)
        self.now, self.iterations = 0.0, 5
        self.planned: list[int] = []

    @property
    def total(self) -> int:
        return 10 + self.iterations

    @property
    def steps(self) -> int:
        return max(self.done - 10, 0)

    @property
    def iteration(self) -> int:
        return self.steps

    def advance(self) -> float | None:  # type: ignore[override]
        self.now += 1.0 if self.done < 10 else 0.1
        self.done += 1
        return 1.0 if self.done > 10 else None

    def fit_to_time(self, seconds: float) -> str:
        return "Fitted."

    def replan(self, iterations: int) -> None:
        self.iterations = iterations
        self.planned.append(iterations)


def test_preparation_does_not_count_as_the_time_of_an_iteration(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Staged] = []
    info = CondenserInfo("staged", "a test", lambda task, saved: built.append(Staged(task)) or built[0])  # type: ignore[func-returns-value]
    clock = SimpleNamespace(perf_counter=lambda: built[0].now if built else 0.0)
    monkeypatch.setattr("condense_once.condensing.runner.time", clock)
    with CONDENSERS.registered(info):
        condense(source, method="staged", ipc=1, factor=1, minutes=20 / 60)
    assert {99, 100, 101} >= {*built[0].planned}  # ten seconds of steps are left, from the first one on
