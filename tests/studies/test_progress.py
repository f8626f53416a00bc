from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condense_once.studies.failures import describe_failures
from condense_once.studies.grid import StudyInput
from condense_once.studies.jobs import Job
from condense_once.studies.progress import estimate_seconds
from condense_once.studies.scheduler import run_missing
from condense_once.studies.state import study_state
from condense_once.studies.store import Store
from condense_once.studies.study import Study

Make = Callable[..., Any]


def counts(study: Study, inputs: dict[str, StudyInput], store: Store) -> tuple[int, int, int, int]:
    found = study_state(study, inputs, store)
    return found.total, found.done, found.missing, found.failed


def seconds(study: Study, inputs: dict[str, StudyInput], store: Store) -> float:
    return estimate_seconds(study, inputs, study_state(study, inputs, store), store)


def test_runs_are_missing_until_they_are_done(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    assert counts(study, inputs, store) == (8, 0, 8, 0)
    assert seconds(study, inputs, store) > 0
    run_missing(study.replace(rules=("random",)), inputs, store, make_engine())
    assert counts(study, inputs, store) == (8, 4, 4, 0)
    run_missing(study, inputs, store, make_engine())
    assert counts(study, inputs, store) == (8, 8, 0, 0)
    assert seconds(study, inputs, store) == 0


def test_evaluations_that_rules_share_count_once(study: Study, inputs: dict[str, StudyInput], store: Store) -> None:
    alone = study.replace(rules=("random",), sizes=("all",), repeats=1)
    store.add_evaluation("known", {"net": "convnet-d1-w8"}, {}, work=1.0, seconds=1.0)  # for the speed
    once = seconds(alone, inputs, store)
    assert seconds(alone.replace(rules=("random", "random-balanced")), inputs, store) == once > 0


def test_the_time_left_depends_on_the_speed_of_each_network(
    study: Study, inputs: dict[str, StudyInput], store: Store
) -> None:
    alone = study.replace(rules=("random",), repeats=1)
    store.add_evaluation("fast", {"net": "convnet-d1-w8"}, {}, work=1.0, seconds=1.0)
    fast = seconds(alone, inputs, store)
    store.add_evaluation("slow", {"net": "convnet-d1-w16"}, {}, work=1.0, seconds=1000.0)
    assert seconds(alone, inputs, store) == fast
    assert seconds(alone.replace(nets=("convnet-d1-w16",)), inputs, store) > 1000 * fast


def test_of_a_study_that_evaluates_nothing_scoring_runs_count(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    both = {**inputs, "other": inputs["tiny"]}
    pictures = study.replace(rules=("yoco",), sizes=(), shown="patches")
    assert counts(pictures, inputs, store) == (1, 0, 1, 0)
    assert counts(pictures.replace(epochs=("0-1", "2-2"), sets=("tiny", "other")), both, store) == (1, 0, 1, 0)

    def spoil(job: Job) -> None:
        raise ValueError("diverged")

    run_missing(pictures, inputs, store, make_engine(spoil))
    assert counts(pictures, inputs, store) == (1, 0, 0, 1)
    found = study_state(pictures, inputs, store)
    assert list(describe_failures(found)) == ["1 scoring run failed (tiny): diverged"]
    store.forget_errors(found.failed_keys)
    run_missing(pictures, inputs, store, make_engine())
    assert counts(pictures, inputs, store) == (1, 1, 0, 0)
