from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from condense_once.studies.grid import Subject
from condense_once.studies.jobs import EvaluateJob, Job, WatchJob
from condense_once.studies.progress import standing
from condense_once.studies.run import run_study
from condense_once.studies.store import Store
from condense_once.studies.study import Study

Make = Callable[..., Any]


def counts(study: Study, subjects: dict[str, Subject], store: Store) -> tuple[int, int, int, int]:
    found = standing(study, subjects, store)
    return found.total, found.done, found.missing, found.failed


def test_trainings_are_missing_until_they_are_done(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    assert counts(study, subjects, store) == (8, 0, 8, 0)
    assert standing(study, subjects, store).seconds_left > 0
    run_study(study.replace(rules=("random",)), subjects, store, make_engine())
    assert counts(study, subjects, store) == (8, 4, 4, 0)
    run_study(study, subjects, store, make_engine())
    assert counts(study, subjects, store) == (8, 8, 0, 0)
    assert standing(study, subjects, store).seconds_left == 0


def test_evaluations_that_rules_share_are_waited_for_once(
    study: Study, subjects: dict[str, Subject], store: Store
) -> None:
    alone = study.replace(rules=("random",), sizes=("all",), repeats=1)
    store.add_evaluation("known", {"net": "convnet-d1-w8"}, {}, work=1.0, seconds=1.0)  # for the pace
    once = standing(alone, subjects, store).seconds_left
    assert standing(alone.replace(rules=("random", "random-balanced")), subjects, store).seconds_left == once > 0


def test_the_time_left_goes_by_the_pace_of_each_network(
    study: Study, subjects: dict[str, Subject], store: Store
) -> None:
    alone = study.replace(rules=("random",), repeats=1)
    store.add_evaluation("fast", {"net": "convnet-d1-w8"}, {}, work=1.0, seconds=1.0)
    fast = standing(alone, subjects, store).seconds_left
    store.add_evaluation("slow", {"net": "convnet-d1-w16"}, {}, work=1.0, seconds=1000.0)
    assert standing(alone, subjects, store).seconds_left == fast
    assert standing(alone.replace(nets=("convnet-d1-w16",)), subjects, store).seconds_left > 1000 * fast


def test_of_a_study_that_evaluates_nothing_scoring_runs_count(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    both = {**subjects, "other": subjects["tiny"]}
    pictures = study.replace(rules=("yoco",), sizes=(), shown="patches")
    assert counts(pictures, subjects, store) == (1, 0, 1, 0)
    assert counts(pictures.replace(epochs=("0-1", "2-2"), sets=("tiny", "other")), both, store) == (1, 0, 1, 0)

    def spoil(job: Job) -> None:
        raise ValueError("diverged")

    run_study(pictures, subjects, store, make_engine(spoil))
    assert counts(pictures, subjects, store) == (1, 0, 0, 1)
    found = standing(pictures, subjects, store)
    assert list(found.complaints()) == ["1 scoring run failed (tiny): diverged"]
    store.forget_errors(found.failed_keys)
    run_study(pictures, subjects, store, make_engine())
    assert counts(pictures, subjects, store) == (1, 1, 0, 0)


def test_failures_are_told_by_their_place_a_sentence_for_each_reason(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, WatchJob) and job.watch.settings.seed == 1:
            raise ValueError("diverged")
        if isinstance(job, EvaluateJob) and job.facts["patches"] == 3 and job.facts["repeat"] != 1:
            raise ValueError("it broke")

    several = study.replace(repeats=4)
    run_study(several, subjects, store, make_engine(spoil))
    found = standing(several, subjects, store)
    assert list(found.complaints()) == [
        "5 trainings failed (random at 1, repeats 0, 2–3; yoco at 1, repeats 0, 2): it broke",
        "4 trainings failed (yoco at 1, repeats 1, 3; yoco at 2, repeats 1, 3): diverged",
    ]
    assert found.failed == 9


@pytest.mark.parametrize("axis", ["sets", "nets"])
def test_places_name_what_a_study_has_several_of(
    axis: str, study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, EvaluateJob):
            raise ValueError("it broke")

    names = ("tiny", "other") if axis == "sets" else ("convnet-d1-w8", "convnet-d1-w16")
    single = study.replace(rules=("random",), sizes=("1",), repeats=1, columns=("rule", "net"), **{axis: names})
    both = {**subjects, "other": subjects["tiny"]}
    run_study(single, both, store, make_engine(spoil))
    (complaint,) = standing(single, both, store).complaints()
    assert (
        complaint == f"2 trainings failed ({'; '.join(f'random at 1, {name}, repeat 0' for name in names)}): it broke"
    )
