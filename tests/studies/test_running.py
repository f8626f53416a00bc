from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from condense_once.evaluation.running import Settings, evaluate
from condense_once.metrics import METRICS, Epochs, Evidence, MetricSettings
from condense_once.metrics.gathering import gather
from condense_once.select.basis import Basis
from condense_once.select.rule import Rule
from condense_once.studies.grid import Subject, cells_of
from condense_once.studies.jobs import EvaluateJob, Job, WatchJob
from condense_once.studies.packing import pack, unpack
from condense_once.studies.running import Progress, run_study, state_of
from condense_once.studies.store import Store
from condense_once.studies.study import Study

Make = Callable[..., Any]


def kinds(engine: Any) -> tuple[int, int]:
    """How many trainings were watched, and how many selections evaluated."""
    watched = sum(isinstance(job, WatchJob) for job in engine.done)
    return watched, len(engine.done) - watched


def test_a_study_measures_what_scoring_selecting_and_evaluating_by_hand_do(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    found = run_study(study, subjects, store, make_engine())
    data, test = subjects["tiny"].data, subjects["tiny"].test
    plain = Settings("float32", "off", workers=1)
    for state in found:
        settings = MetricSettings(training=3, lbpe=Epochs.range(0, 1), seed=state.cell.repeat)
        evidence = Evidence(data.labels)
        if state.cell.rule.metric == "lbpe":
            evidence = gather(data, ["lbpe"], settings, net="convnet-d1-w8", seed=state.cell.repeat)
        basis = Basis.of_evidence(data, evidence, settings)
        rows = np.sort(Rule.parse(state.cell.at("rule")).rows(basis, state.cell.patches))
        assert state.selected is not None
        np.testing.assert_array_equal(state.selected.rows, rows)
        by_hand = evaluate(
            data.take(rows),
            test,
            protocol="tiny",
            net="convnet-d1-w8",
            repeats=1,
            seed=state.cell.repeat,
            settings=plain,
        )
        assert state.measured is not None
        assert state.measured.result is not None
        assert state.measured.result["accuracy"] == by_hand.mean
        assert state.measured.result["per_class"] == list(by_hand.per_class)


def test_only_what_is_missing_runs(study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make) -> None:
    first = make_engine()
    run_study(study, subjects, store, first)
    assert kinds(first) == (2, 8)  # two scoring runs, and every cell keeps other patches
    again = make_engine()
    run_study(study, subjects, store, again)
    assert again.done == []
    more = make_engine()
    run_study(study.replace(sizes=("1", "2", "3")), subjects, store, more)
    assert kinds(more) == (0, 4)  # the scoring runs are there already


def test_a_run_that_is_stopped_goes_on_where_it_was(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    whole = run_study(study, subjects, Store(store.path.with_name("whole.sqlite")), make_engine())
    engine = make_engine()

    def stop(job: Job) -> None:
        if len(engine.done) == 6:
            raise KeyboardInterrupt

    engine.spoil = stop
    with pytest.raises(KeyboardInterrupt):
        run_study(study, subjects, store, engine)
    rest = make_engine()
    found = run_study(study, subjects, store, rest)
    assert len(rest.done) == 10 - 5
    assert [state.measured.result for state in found if state.measured] == [
        state.measured.result for state in whole if state.measured
    ]


def test_rules_that_keep_the_same_are_evaluated_once(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    engine = make_engine()
    everything = study.replace(sizes=("100%",), repeats=1)
    found = run_study(everything, subjects, store, engine)
    assert kinds(engine) == (1, 1)
    assert len({state.selected.evaluation for state in found if state.selected}) == 1


def test_a_cell_that_fails_is_recorded_and_the_rest_goes_on(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, EvaluateJob) and job.facts["patches"] == 6 and job.facts["repeat"] == 1:
            raise ValueError("it broke")

    found = run_study(study, subjects, store, make_engine(spoil))
    failed = [state.cell.at("rule") for state in found if state.error == "it broke"]
    assert failed == ["random", "yoco"]
    assert sum(state.done for state in found) == 6
    later = make_engine()
    run_study(study, subjects, store, later)
    assert later.done == []  # not tried again without being asked
    store.forget_errors()
    assert all(state.done for state in run_study(study, subjects, store, later))
    assert kinds(later) == (0, 2)


def test_a_scoring_run_that_fails_takes_only_its_own_cells_with_it(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, WatchJob) and job.watch.settings.seed == 1:
            raise ValueError("diverged")

    found = run_study(study, subjects, store, make_engine(spoil))
    failed = {(state.cell.at("rule"), state.cell.repeat) for state in found if state.error == "diverged"}
    assert failed == {("yoco", 1)}
    assert sum(state.done for state in found) == 6


def test_what_cannot_be_selected_is_recorded_and_the_rest_goes_on(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    """el2n looks at ten epochs, the training has three."""
    found = run_study(study.replace(rules=("random", "el2n")), subjects, store, make_engine())
    assert [state.done for state in found if state.cell.rule.name == "random"] == [True] * 4
    failed = {state.error for state in found if state.cell.rule.name == "el2n"}
    assert len(failed) == 1
    assert "needs 10 epochs" in str(failed.pop())


def test_only_the_cells_that_are_asked_for_run(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    cells = [cell for cell in cells_of(study, subjects) if cell.rule.name == "random"]
    engine = make_engine()
    found = run_study(study, subjects, store, engine, among={cells[0].key, cells[1].key})
    assert [state.done for state in found] == [True, True] + 6 * [False]
    assert kinds(engine) == (0, 2)


def test_what_another_process_has_claimed_is_left_to_it(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = study.replace(rules=("random",), sizes=("1",), repeats=2)
    reference = run_study(single, subjects, Store(store.path.with_name("whole.sqlite")), make_engine())
    assert reference[0].selected is not None
    assert reference[0].measured is not None
    assert reference[0].measured.result is not None
    key, result = reference[0].selected.evaluation, reference[0].measured.result
    other = Store(store.path)
    assert other.claim(key)
    engine = make_engine()
    told: list[Progress] = []

    def tell(progress: Progress) -> None:
        told.append(progress)
        if progress.done == 1:  # ours is done; now the other process ends, too
            other.add_evaluation(key, {}, result, work=1.0, seconds=1.0)

    found = run_study(single, subjects, store, engine, progress=tell)
    assert len(engine.done) == 1
    assert all(state.done for state in found)
    assert (told[-1].done, told[-1].cells, told[-1].work_left) == (2, 2, 0)


def test_evidence_comes_back_whole(subjects: dict[str, Subject]) -> None:
    subject = subjects["tiny"]
    settings = MetricSettings(training=2, lbpe=Epochs.all(), el2n=1, subset_runs=2, subset_epochs=1)
    names = METRICS.names()
    evidence = gather(subject.data, names, settings, net="convnet-d1-w8")
    again = unpack(pack(evidence))
    assert again.parts == evidence.parts
    for info in METRICS:
        np.testing.assert_array_equal(info.score(again, settings), info.score(evidence, settings))


def test_states_are_known_without_running(study: Study, subjects: dict[str, Subject], store: Store) -> None:
    states = [state_of(cell, store) for cell in cells_of(study, subjects)]
    assert not any(state.done or state.error for state in states)
