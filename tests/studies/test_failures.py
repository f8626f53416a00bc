from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from condense_once.studies.failures import describe_failures
from condense_once.studies.grid import StudyInput
from condense_once.studies.jobs import EvaluationJob, Job, ScoringJob
from condense_once.studies.scheduler import run_missing
from condense_once.studies.state import study_state
from condense_once.studies.store import Store
from condense_once.studies.study import Study

Make = Callable[..., Any]


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
