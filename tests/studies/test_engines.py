from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from multiprocessing.spawn import get_preparation_data
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.studies.conftest import PLAIN

from condense_once.errors import BadOption
from condense_once.studies import local_engine
from condense_once.studies.engines import MAX_CRASHES, EngineOptions, Outcome
from condense_once.studies.grid import StudyInput
from condense_once.studies.local_engine import LocalEngine
from condense_once.studies.scheduler import run_missing
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.compute_config import ComputeConfig

DIE = "__import__('os').kill(__import__('os').getpid(), 9)"
REFUSE = "__import__('condense_once').open_source('no-such-source')"


JOBS = """
class Expression:
    def __init__(self, key, expression):
        self.key, self.expression = key, expression

    def perform(self, inputs, compute):
        return eval(self.expression)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], Any]]:
    """Makes jobs that evaluate an expression, from a module that other processes can import."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "expression_jobs.py").write_text(JOBS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield import_module("expression_jobs").Expression


@pytest.fixture(scope="module")
def engine(job: object) -> Iterator[LocalEngine]:
    """Shared by the tests, because a worker takes seconds to start."""
    with closing(LocalEngine([], PLAIN, workers=2)) as engine:
        yield engine


def outcomes(engine: LocalEngine, count: int) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    deadline = time.monotonic() + 120
    while len(found) < count:
        assert time.monotonic() < deadline
        found.update({outcome.job.key: outcome for outcome in engine.finished(1.0)})
    return found


def test_what_goes_wrong_with_a_job_is_an_outcome_and_the_others_go_on(
    engine: LocalEngine, job: Callable[[str, str], Any]
) -> None:
    for key, expression in {"good": "6 * 7", "bad": "1 / 0", "refused": REFUSE, "deadly": DIE, "last": "1"}.items():
        engine.submit(job(key, expression))
    found = outcomes(engine, 5)
    assert (found["good"].result, found["good"].error, found["last"].result) == (42, None, 1)
    assert found["bad"].error == "ZeroDivisionError: division by zero"
    assert str(found["refused"].error).startswith("There is no 'no-such-source'")
    assert (
        found["deadly"].error == f"Its process died {MAX_CRASHES} times (exit code -9); it may have run out of memory."
    )


def test_jobs_run_in_processes_of_one_thread_that_are_reused(
    engine: LocalEngine, job: Callable[[str, str], Any]
) -> None:
    where = "(__import__('os').getpid(), __import__('torch').get_num_threads())"
    for key in range(6):
        engine.submit(job(str(key), where))
    found = [outcome.result for outcome in outcomes(engine, 6).values()]
    assert {threads for _, threads in found} == {1}
    processes = {process for process, _ in found}
    assert len(processes) <= 2
    assert os.getpid() not in processes


def test_closing_ends_what_runs(job: Callable[[str, str], Any]) -> None:
    engine = LocalEngine([], PLAIN, workers=1)
    engine.submit(job("long", "__import__('threading').Event().wait()"))
    (worker,) = engine._workers
    engine.close()
    assert worker.process.exitcode == -signal.SIGKILL


def test_processes_measure_what_is_measured_here(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Any
) -> None:
    found = run_missing(study, inputs, store, LocalEngine(list(inputs.values()), PLAIN, workers=2))
    here = run_missing(study, inputs, Store(store.path.with_name("here.sqlite")), make_engine())
    measured = [[state.accuracy for state in states] for states in (found, here)]
    assert None not in measured[0]
    assert measured[0] == measured[1]


def test_a_process_that_died_with_nothing_to_do_is_replaced(
    engine: LocalEngine, job: Callable[[str, str], Any]
) -> None:
    engine.submit(job("first", "1"))
    outcomes(engine, 1)
    worker = engine._workers[0]  # the first to get a job
    worker.process.kill()
    worker.process.join()
    engine.submit(job("second", "2"))
    assert outcomes(engine, 1)["second"].result == 2


def test_no_job_is_blamed_for_processes_that_died_with_nothing_to_do(
    engine: LocalEngine, job: Callable[[str, str], Any]
) -> None:
    for key in ("first", "second"):
        engine.submit(job(key, "__import__('time').sleep(0.1)"))
    outcomes(engine, 2)
    assert len(engine._workers) == MAX_CRASHES
    for worker in engine._workers:
        worker.process.kill()
        worker.process.join()
    engine.submit(job("third", "3"))
    assert outcomes(engine, 1)["third"].result == 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"address": "1.2.3.4:5"}, "`address` is that of a Ray cluster"),
        ({"engine": "ray", "workers": 2}, "leave out `workers`"),
        ({"engine": "ray", "compute": ComputeConfig(device="cuda:1")}, "`device` must be cpu or cuda"),
        ({"engine": "dask"}, "must be local or ray, not 'dask'"),
        ({"workers": 0}, "at least 1, not 0"),
        ({"compute": ComputeConfig(device="nodev")}, "no device 'nodev'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadOption, match=expected):
        EngineOptions(**options)


@pytest.mark.parametrize(
    ("script", "imported"), [("run_study('mine')", False), ("if __name__ == '__main__': run_study('mine')", True)]
)
def test_workers_import_scripts_with_a_main_guard_only(
    script: str, imported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    main.__file__ = str(tmp_path / "script.py")
    Path(main.__file__).write_text(script)
    monkeypatch.setitem(sys.modules, "__main__", main)
    with local_engine._skip_unguarded_script():
        assert (get_preparation_data("worker").get("init_main_from_path") == main.__file__) is imported
    assert sys.modules["__main__"] is main
