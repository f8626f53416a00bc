"""What the verb `study` does while a study is measured, or measured again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import ProgressColumn, Task
from rich.text import Text

from condense_once.cli.printing import note, track
from condense_once.errors import BadOption
from condense_once.text import human_time

if TYPE_CHECKING:
    from condense_once.studies.engines import Engine
    from condense_once.studies.grid import Subject
    from condense_once.studies.progress import Standing
    from condense_once.studies.run import Progress, State
    from condense_once.studies.store import Store
    from condense_once.studies.study import Study
    from condense_once.train.hardware import ComputeConfig


@dataclass(frozen=True)
class Where:
    """Where jobs run, and how."""

    engine: str
    address: str | None
    workers: int | None
    compute: ComputeConfig

    def __post_init__(self) -> None:
        if self.engine == "local" and self.address is not None:
            raise BadOption("An address is one of a Ray cluster; pass --engine ray with it.")
        if self.engine == "ray" and self.workers is not None:
            raise BadOption("A Ray cluster runs as many jobs as it has room for; leave out --workers.")

    def check(self) -> None:
        """Refuse a device that jobs would fail on, each of them."""
        from condense_once.train.hardware import find_device

        if self.engine == "local":
            find_device(self.compute.device)
        elif self.compute.device not in ("cpu", "cuda"):
            raise BadOption(f"On a Ray cluster a device is cpu or cuda, whichever is free, not {self.compute.device}.")

    def make(self, subjects: Mapping[str, Subject]) -> Engine:
        if self.engine == "local":
            from condense_once.studies.engines import LocalEngine

            return LocalEngine(list(subjects.values()), self.compute, self.workers)
        from condense_once.studies.ray_engine import RayEngine

        return RayEngine(list(subjects.values()), self.compute, self.address)


def measure(
    study: Study,
    subjects: Mapping[str, Subject],
    store: Store,
    where: Where,
    among: Collection[str] | None = None,
) -> list[State]:
    """Run what is missing of a study, or of its cells with these keys, and show how far it is."""
    from condense_once.studies.engines import LocalEngine
    from condense_once.studies.progress import standing
    from condense_once.studies.run import run_study

    column = _Cells()

    def tell(progress: Progress) -> None:
        column.told = progress
        total = progress.work_done + progress.work_left
        bar(int(1000 * progress.work_done / total) if total else 1000, 1000)

    found = standing(study, subjects, store, among)
    engine = where.make(subjects) if found.seconds_left else LocalEngine([], where.compute)  # which has nothing to do
    with closing(engine):
        _say_before(found, store, engine.slots)
        with track(study.name, column) as bar:
            return run_study(study, subjects, store, engine, among=among, progress=tell)


def _say_before(found: Standing, store: Store, slots: int) -> None:
    if not found.seconds_left:
        return
    time = human_time(found.seconds_left / slots)
    if not found.states:
        note([f"A scoring run of each set, about {time}."])
        return
    there = f"{found.done} of them known from {store.path}, {found.failed} failed"
    note([f"{len(found.states)} trainings, {there}; {found.missing} to be run, about {time}."])


class _Cells(ProgressColumn):
    """How many cells of a study are known."""

    told: Progress | None = None

    def render(self, task: Task) -> Text:
        if self.told is None:
            return Text("")
        failed = f", {self.told.failed} failed" if self.told.failed else ""
        return Text(f"{self.told.done}/{self.told.cells}{failed}")
