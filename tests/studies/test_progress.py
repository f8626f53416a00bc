from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from condense_once.studies.failures import describe_failures
from condense_once.studies.grid import StudyInput
from condense_once.studies.jobs import EvaluationJob, Job, ScoringJob
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


def test_failures_are_described_by_position_one_sentence_per_reason(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, ScoringJob) and job.config.seed == 1:
            raise ValueError("diverged")
        if isinstance(job, EvaluationJob) and job.facts["patches"] == 3 and job.facts["repeat"] != 1:
            raise ValueError("it broke")

    several = study.replace(repeats=4)
    run_missing(several, inputs, store, make_engine(spoil))
    found = study_state(several, inputs, store)
    assert list(describe_failures(found)) == [
        "5 runs failed (random at 1, repeats 0, 2–3; yoco at 1, repeats 0, 2): it broke",
        "4 runs failed (yoco at 1, repeats 1, 3; yoco at 2, repeats 1, 3): diverged",
    ]
    assert found.failed == 9


@pytest.mark.parametrize("axis", ["sets", "nets"])
def test_places_name_what_a_study_has_several_of(
    axis: str, study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, EvaluationJob):
            raise ValueError("it broke")

    names = ("tiny", "other") if axis == "sets" else ("convnet-d1-w8", "convnet-d1-w16")
    single = study.replace(rules=("random",), sizes=("1",), repeats=1, columns=("rule", "net"), **{axis: names})
    both = {**inputs, "other": inputs["tiny"]}
    run_missing(single, both, store, make_engine(spoil))
    (sentence,) = describe_failures(study_state(single, both, store))
    assert sentence == f"2 runs failed ({'; '.join(f'random at 1, {name}, repeat 0' for name in names)}): it broke"
