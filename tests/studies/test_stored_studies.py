from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.studies.conftest import InProcessEngine

from condense_once import run_study
from condense_once.condensed.file import save
from condense_once.data.arrays import save_arrays
from condense_once.errors import BadOption
from condense_once.studies.engines import EngineOptions
from condense_once.studies.grid import StudyInput
from condense_once.studies.jobs import Job
from condense_once.studies.store import Store
from condense_once.studies.stored_studies import retry_failures, study_statuses
from condense_once.studies.study import Study


class Engines:
    """Starts engines in this process, whose jobs fail while `broken`."""

    def __init__(self) -> None:
        self.broken = False
        self.started: list[InProcessEngine] = []

    def start(self, options: EngineOptions, inputs: dict[str, StudyInput]) -> InProcessEngine:
        self.started.append(InProcessEngine(inputs, self._spoil))
        return self.started[-1]

    def _spoil(self, job: Job) -> None:
        if self.broken:
            raise ValueError("it broke")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    made = Engines()
    monkeypatch.setattr(EngineOptions, "start", lambda options, inputs: made.start(options, inputs))
    return made


@pytest.fixture
def mine(study: Study, inputs: dict[str, StudyInput], tmp_path: Path) -> Study:
    save(inputs["tiny"].data, tmp_path / "my.safetensors")
    save_arrays(inputs["tiny"].test, tmp_path / "test.npz")
    single = study.replace(rules=("random",), sizes=("1",), repeats=2)
    return single.replace(sets=(str(tmp_path / "my.safetensors"),), test=str(tmp_path / "test.npz"))


def test_only_what_failed_runs_again(mine: Study, engines: Engines, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    run_study(mine.replace(repeats=1), store=store)
    engines.broken = True
    run_study(mine, store=store)
    before = study_statuses(store)
    assert [(each.runs, each.done, each.missing, each.failed) for each in before] == [(1, 1, 0, 0), (2, 1, 0, 1)]
    assert before[1].failures == ("1 run failed (random at 1, repeat 1): it broke",)
    assert not retry_failures(store), "it fails again"
    engines.broken = False
    logged: list[str] = []
    assert retry_failures(store, notify=logged.append)
    assert logged[0] == "small: retrying 1 of 2 runs, which failed."
    assert len(engines.started[-1].done) == 1
    assert [(each.done, each.failed, each.seconds_left) for each in study_statuses(store)] == [(1, 0, 0), (2, 0, 0)]
    count = len(engines.started)
    assert retry_failures(store)
    assert len(engines.started) == count, "nothing failed, so no engine starts"


def test_a_study_that_cannot_be_opened_does_not_hide_the_others(mine: Study, engines: Engines, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(Path(mine.sets[0]).read_bytes())
    run_study(mine.replace(name="copied", sets=(str(copy),)), store=store)
    run_study(mine, store=store)
    copy.unlink()
    copied, small = study_statuses(store)
    assert (copied.study, copied.runs, small.study, small.runs) == ("copied", None, "small", 2)
    assert "There is no file" in str(copied.error)
    logged: list[str] = []
    assert not retry_failures(store, notify=logged.append)
    assert logged[0].startswith("copied cannot be retried: There is no file")


def test_a_study_whose_row_was_wiped_has_no_name(mine: Study, engines: Engines, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    run_study(mine, store=store)
    with closing(sqlite3.connect(store)) as database:
        database.execute("update studies set key = null, spec = ''")
        database.commit()
    (status,) = study_statuses(store)
    assert (status.study, status.runs) == ("A study without a name", None)


def test_without_a_store_or_a_study_in_it_there_is_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="There is no store"):
        study_statuses(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    Store(tmp_path / "empty.sqlite").close()
    with pytest.raises(BadOption, match="There are no studies"):
        retry_failures(tmp_path / "empty.sqlite")
