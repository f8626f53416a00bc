from __future__ import annotations

import os
import signal
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from condense_once.studies.engines import DEATHS, Done, LocalEngine
from condense_once.studies.grid import Subject
from condense_once.studies.run import run_study
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.hardware import ComputeConfig

DIE = "__import__('os').kill(__import__('os').getpid(), 9)"
REFUSE = "__import__('condense_once').open_source('no-such-source')"


ODD = """
class Odd:
    def __init__(self, key, expression):
        self.key, self.expression = key, expression

    def perform(self, subjects, compute):
        return eval(self.expression)
"""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    """Makes jobs that evaluate an expression, of a module that other processes find, too."""
    (tmp_path / "odd_jobs.py").write_text(ODD)
    monkeypatch.syspath_prepend(tmp_path)
    return import_module("odd_jobs").Odd  # type: ignore[no-any-return]


def outcomes(engine: LocalEngine, count: int) -> dict[str, Done]:
    found: dict[str, Done] = {}
    while len(found) < count:
        found.update({done.job.key: done for done in engine.finished(1.0)})
    return found


@pytest.fixture
def engine() -> Any:
    made = LocalEngine([], None, workers=2)  # type: ignore[arg-type]
    yield made
    made.close()


def test_what_goes_wrong_with_a_job_is_an_outcome_and_the_others_go_on(
    engine: LocalEngine, odd: Callable[[str, str], Any]
) -> None:
    for key, expression in {"good": "6 * 7", "bad": "1 / 0", "refused": REFUSE, "deadly": DIE, "last": "1"}.items():
        engine.submit(odd(key, expression))
    found = outcomes(engine, 5)
    assert (found["good"].found, found["good"].error, found["last"].found) == (42, None, 1)
    assert found["bad"].error == "ZeroDivisionError: division by zero"
    assert str(found["refused"].error).startswith("There is no 'no-such-source'")
    assert found["deadly"].error == f"Its process died {DEATHS} times (exit code -9); perhaps memory ran out."


def test_jobs_run_in_processes_of_one_thread_that_are_reused(
    engine: LocalEngine, odd: Callable[[str, str], Any]
) -> None:
    where = "(__import__('os').getpid(), __import__('torch').get_num_threads())"
    for key in range(6):
        engine.submit(odd(str(key), where))
    found = [done.found for done in outcomes(engine, 6).values()]
    assert {threads for _, threads in found} == {1}
    processes = {process for process, _ in found}
    assert len(processes) <= 2
    assert os.getpid() not in processes


def test_closing_ends_what_runs(engine: LocalEngine, odd: Callable[[str, str], Any]) -> None:
    engine.submit(odd("long", "__import__('threading').Event().wait()"))
    (worker,) = engine._workers
    engine.close()
    assert worker.process.exitcode == -signal.SIGKILL


def test_processes_measure_what_is_measured_here(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Any
) -> None:
    plain = ComputeConfig("float32", "off")
    found = run_study(study, subjects, store, LocalEngine(list(subjects.values()), plain, workers=2))
    here = run_study(study, subjects, Store(store.path.with_name("here.sqlite")), make_engine())
    measured = [[state.accuracy for state in states] for states in (found, here)]
    assert None not in measured[0]
    assert measured[0] == measured[1]


def test_a_process_that_died_with_nothing_to_do_is_replaced(
    engine: LocalEngine, odd: Callable[[str, str], Any]
) -> None:
    engine.submit(odd("first", "1"))
    outcomes(engine, 1)
    (worker,) = engine._workers
    worker.process.kill()
    worker.process.join()
    engine.submit(odd("second", "2"))
    assert outcomes(engine, 1)["second"].found == 2


def test_no_job_is_blamed_for_processes_that_died_with_nothing_to_do(
    engine: LocalEngine, odd: Callable[[str, str], Any]
) -> None:
    for key in ("first", "second"):
        engine.submit(odd(key, "1"))
    outcomes(engine, 2)
    assert len(engine._workers) == DEATHS
    for worker in engine._workers:
        worker.process.kill()
        worker.process.join()
    engine.submit(odd("third", "3"))
    assert outcomes(engine, 1)["third"].found == 3
