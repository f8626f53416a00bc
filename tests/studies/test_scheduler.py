from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.studies.conftest import PLAIN

from condense_once.condensed.space import Space
from condense_once.errors import BadOption
from condense_once.evaluation.evaluate import evaluate
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.metrics import METRICS, Epochs, MetricConfig, ScoringRun, record_scoring_run
from condense_once.selection.rule import Rule
from condense_once.selection.select import rows_from_run
from condense_once.studies import scheduler
from condense_once.studies.grid import StudyInput, cells_of, scoring_cells
from condense_once.studies.jobs import EvaluationJob, Job, ScoringJob, scoring_job
from condense_once.studies.progress import StudyProgress
from condense_once.studies.scheduler import run_missing
from condense_once.studies.scoring_run_io import pack, unpack
from condense_once.studies.state import cell_state, study_state
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import training_data

Make = Callable[..., Any]


def kinds(engine: Any) -> tuple[int, int]:
    """How many scoring runs and how many evaluations ran."""
    scored = sum(isinstance(job, ScoringJob) for job in engine.done)
    return scored, len(engine.done) - scored


def test_a_study_measures_what_scoring_selecting_and_evaluating_by_hand_do(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    found = run_missing(study, inputs, store, make_engine())
    data, test = inputs["tiny"].data, inputs["tiny"].test
    plain = ComputeConfig("float32", "off", workers=1)
    for state in found:
        config = MetricConfig(scoring_epochs=3, lbpe_epochs=Epochs.range(0, 1), seed=state.cell.repeat)
        run = ScoringRun(data.labels)
        if state.cell.rule.metric == "lbpe":
            run = record_scoring_run(data, ["lbpe"], config, net="convnet-d1-w8", seed=state.cell.repeat)
        rule = Rule.parse(state.cell.at("rule"))
        rows = np.sort(rows_from_run(data, rule, state.cell.patches, run, config))
        assert state.selection is not None
        np.testing.assert_array_equal(state.selection.rows, rows)
        by_hand = evaluate(
            data.take(rows),
            test,
            protocol="tiny",
            net="convnet-d1-w8",
            repeats=1,
            seed=state.cell.repeat,
            compute=plain,
        )
        assert state.evaluation is not None
        assert state.evaluation.result is not None
        assert state.evaluation.result["accuracy"] == by_hand.mean
        assert state.evaluation.result["per_class"] == list(by_hand.per_class)


def test_only_what_is_missing_runs(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    first = make_engine()
    run_missing(study, inputs, store, first)
    assert kinds(first) == (2, 8)  # two scoring runs, and every cell keeps other patches
    again = make_engine()
    run_missing(study, inputs, store, again)
    assert again.done == []
    for key in {job.key for job in first.done if isinstance(job, ScoringJob)}:
        assert unpack(store.scoring_bytes(key) or b"").rounding == {"threads": 1, "native": False}
    more = make_engine()
    run_missing(study.replace(sizes=("1", "2", "3")), inputs, store, more)
    assert kinds(more) == (0, 4)  # the scoring runs are there already


def test_a_damaged_scoring_run_runs_again_if_something_needs_it(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    run_missing(study, inputs, store, make_engine())
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("update evidence set content = content || 'x'")
    more = make_engine()
    larger = study.replace(sizes=("3",), repeats=1)
    states = run_missing(larger, inputs, Store(store.path), more)
    assert kinds(more) == (1, 2)
    assert [(state.done, state.error) for state in states] == [(True, None)] * 2


def test_a_run_that_is_stopped_goes_on_where_it_was(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    whole = run_missing(study, inputs, Store(store.path.with_name("whole.sqlite")), make_engine())
    engine = make_engine()

    def stop(job: Job) -> None:
        if len(engine.done) == 6:
            raise KeyboardInterrupt

    engine.spoil = stop
    with pytest.raises(KeyboardInterrupt):
        run_missing(study, inputs, store, engine)
    rest = make_engine()
    found = run_missing(study, inputs, store, rest)
    assert len(rest.done) == 10 - 5
    assert [state.evaluation.result for state in found if state.evaluation] == [
        state.evaluation.result for state in whole if state.evaluation
    ]


def test_rules_that_keep_the_same_are_evaluated_once(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    engine = make_engine()
    everything = study.replace(sizes=("100%",), repeats=1)
    found = run_missing(everything, inputs, store, engine)
    assert kinds(engine) == (1, 1)
    assert len({state.selection.evaluation_key for state in found if state.selection}) == 1


def test_a_cell_that_fails_is_recorded_and_the_rest_goes_on(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, EvaluationJob) and job.facts["patches"] == 6 and job.facts["repeat"] == 1:
            raise ValueError("it broke")

    found = run_missing(study, inputs, store, make_engine(spoil))
    failed = [state.cell.at("rule") for state in found if state.error == "it broke"]
    assert failed == ["random", "yoco"]
    assert sum(state.done for state in found) == 6
    later = make_engine()
    run_missing(study, inputs, store, later)
    assert later.done == []  # not tried again without being asked
    store.forget_errors(study_state(study, inputs, store).failed_keys)
    assert all(state.done for state in run_missing(study, inputs, store, later))
    assert kinds(later) == (0, 2)


def test_a_scoring_run_that_fails_takes_only_its_own_cells_with_it(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, ScoringJob) and job.config.seed == 1:
            raise ValueError("diverged")

    found = run_missing(study, inputs, store, make_engine(spoil))
    failed = {(state.cell.at("rule"), state.cell.repeat) for state in found if state.error == "diverged"}
    assert failed == {("yoco", 1)}
    assert sum(state.done for state in found) == 6


def test_what_cannot_be_selected_is_recorded_and_the_rest_goes_on(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    def diverged(evidence: ScoringRun, settings: MetricConfig) -> np.ndarray:
        return np.full(len(evidence), np.nan)

    with METRICS.registered(replace(METRICS.get("aum"), compute=diverged)):
        found = run_missing(study.replace(rules=("random", "aum")), inputs, store, make_engine())
    assert [state.done for state in found if state.cell.rule.name == "random"] == [True] * 4
    failed = {state.error for state in found if state.cell.rule.name == "aum"}
    assert len(failed) == 1
    assert "must return one finite score" in str(failed.pop())


def test_jobs_are_handed_out_while_others_are_selected(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if every selection took longer than the time between reports."""
    happened: list[str] = []
    engine = make_engine()
    monkeypatch.setattr(scheduler, "REPORT_EVERY", 0.0)
    monkeypatch.setattr(engine, "submit", lambda job, submit=engine.submit: (happened.append("job"), submit(job)))
    select = scheduler._Scheduler._select
    monkeypatch.setattr(
        scheduler._Scheduler, "_select", lambda run, cell: (happened.append("selection"), select(run, cell))[1]
    )
    run_missing(study.replace(rules=("random",)), inputs, store, engine)
    assert happened == ["selection", "job"] * 4


@pytest.fixture
def twice(study: Study) -> Iterator[str]:
    """The name of the study's protocol with double normalisation."""
    with PROTOCOLS.registered(replace(PROTOCOLS.get(study.protocol), name="twice", double_normalise=True)) as protocol:
        yield protocol.name


def test_scores_of_a_set_that_is_normalised_twice_are_those_of_such_a_training(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make, twice: str
) -> None:
    plain = study.replace(rules=("yoco",), repeats=1)
    again = plain.replace(protocol=twice)
    for cell in cells_of(again, inputs):  # of pixels, which are normalised once by any protocol
        assert scoring_job(cell) == scoring_job(next(cells_of(plain, inputs)))
    space = Space("normalised", (0.5,) * 3, (0.25,) * 3)
    data = replace(inputs["tiny"].data, cells=inputs["tiny"].data.inputs().astype(np.float32), space=space)
    inputs["tiny"] = replace(inputs["tiny"], data=data)
    (cell, *_), (other, *_) = cells_of(again, inputs), cells_of(plain, inputs)
    job, single = scoring_job(cell), scoring_job(other)
    assert job is not None
    assert single is not None
    assert (job.double_normalise, single.double_normalise) == (True, False)
    assert "normalised" not in other.facts["scores"]
    assert cell.facts["scores"]["normalised"] == "twice"
    assert job.key != single.key
    run_missing(again, inputs, store, make_engine())
    found = unpack(store.scoring_bytes(job.key) or b"")
    by_hand = replace(training_data(data), images=(torch.from_numpy(data.cells) - 0.5) / 0.25)
    expected = record_scoring_run(by_hand, ["lbpe"], cell.config, net="convnet-d1-w8", compute=PLAIN)
    assert found.dynamics is not None
    assert expected.dynamics is not None
    assert found.dynamics.epochs == 3
    np.testing.assert_array_equal(found.dynamics.error[:2], expected.dynamics.error)


def test_a_precision_that_is_not_the_usual_one_is_computed_in_and_part_of_every_key(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    single = study.replace(rules=("yoco",), sizes=("1",), repeats=1)
    (usual,), (half,) = (cells_of(single.replace(precision=precision), inputs) for precision in ("float32", "bfloat16"))
    usual_job, half_job = scoring_job(usual), scoring_job(half)
    assert usual_job is not None
    assert half_job is not None
    assert not {usual.key, usual_job.key} & {half.key, half_job.key}
    assert all("precision" not in facts for facts in (usual.facts, usual_job.facts, usual.evaluated_by))
    (state,) = run_missing(single.replace(precision="bfloat16"), inputs, store, make_engine())
    assert state.evaluation is not None
    assert state.evaluation.result is not None
    assert state.evaluation.result["machine"]["computed_in"] == "bfloat16"  # although the engine is set to float32


def test_subset_runs_count_as_work(study: Study, inputs: dict[str, StudyInput]) -> None:
    plain, long = (
        next(cells_of(study.replace(rules=(rule,), scoring_epochs=10), inputs))
        for rule in ("lbpe-clean", "memorization")
    )
    short_job, long_job = scoring_job(plain), scoring_job(long)
    assert short_job is not None
    assert long_job is not None
    assert long_job.work / short_job.work == pytest.approx(1 + 10 * 100 * 0.7 / 10)


def test_scores_before_training_are_made_without_training(study: Study, inputs: dict[str, StudyInput]) -> None:
    job = scoring_job(next(cells_of(study.replace(rules=("grand-init",), scoring_epochs=10), inputs)))
    assert job is not None
    assert unpack(job.perform(list(inputs.values()), ComputeConfig())).parts == {"untrained"}
    trained = scoring_job(next(cells_of(study.replace(rules=("yoco",), scoring_epochs=10), inputs)))
    assert trained is not None
    assert job.work < trained.work


def test_a_study_of_scores_may_place_its_sets_anywhere(study: Study, inputs: dict[str, StudyInput]) -> None:
    pictures = study.replace(sizes=(), sets=("tiny", "other"), rows=("rule",), columns=("set",), shown="patches")
    both = {**inputs, "other": inputs["tiny"]}
    assert [cell.at("set") for cell in scoring_cells(pictures, both)] == ["tiny", "other"]


def test_an_engine_is_closed_whatever_happens(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, closed = make_engine(), []
    monkeypatch.setattr(engine, "close", lambda: closed.append(True))
    with pytest.raises(BadOption, match="fewer than 27"):
        run_missing(study.replace(sizes=("9",)), inputs, store, engine)
    assert closed


def test_only_the_cells_that_are_asked_for_run(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    cells = [cell for cell in cells_of(study, inputs) if cell.rule.name == "random"]
    engine = make_engine()
    found = run_missing(study, inputs, store, engine, among={cells[0].key, cells[1].key})
    assert [state.done for state in found] == [True, True] + 6 * [False]
    assert kinds(engine) == (0, 2)


def test_what_another_process_has_claimed_is_left_to_it(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = study.replace(rules=("random",), sizes=("1",), repeats=2)
    reference = run_missing(single, inputs, Store(store.path.with_name("whole.sqlite")), make_engine())
    assert reference[0].selection is not None
    assert reference[0].evaluation is not None
    assert reference[0].evaluation.result is not None
    key, result = reference[0].selection.evaluation_key, reference[0].evaluation.result
    other = Store(store.path)
    assert other.claims.acquire(key)
    engine = make_engine()
    reports: list[StudyProgress] = []

    def report(progress: StudyProgress) -> None:
        reports.append(progress)
        if progress.done == 1:  # ours is done; now the other process ends, too
            other.add_evaluation(key, {}, result, work=1.0, seconds=1.0)

    found = run_missing(single, inputs, store, engine, progress=report)
    assert len(engine.done) == 1
    assert all(state.done for state in found)
    assert (reports[-1].done, reports[-1].total, reports[-1].work_left) == (2, 2, 0)


def test_a_scoring_run_comes_back_whole(inputs: dict[str, StudyInput]) -> None:
    pair = inputs["tiny"]
    config = MetricConfig(scoring_epochs=2, lbpe_epochs=Epochs.all(), el2n_epochs=1, subset_runs=2, subset_epochs=1)
    names = METRICS.names()
    run = record_scoring_run(pair.data, names, config, net="convnet-d1-w8")
    again = unpack(pack(run))
    assert again.parts == run.parts
    assert set(again.rounding) == {"threads", "native"}
    assert again.rounding == run.rounding
    for info in METRICS:
        np.testing.assert_array_equal(info.score(again, config), info.score(run, config))


def test_patches_were_scored_by_the_run_that_chose_them(
    study: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    first = run_missing(study.replace(rules=("yoco",)), inputs, store, make_engine())
    engine = make_engine()
    again = run_missing(study.replace(rules=("yoco",), scoring_epochs=5), inputs, store, engine)
    assert not engine.done
    assert [state.scoring_run for state in again] == [state.scoring_run for state in first]
    assert {state.scoring_run.epochs for state in again if state.scoring_run is not None} == {3}


def test_states_are_known_without_running(study: Study, inputs: dict[str, StudyInput], store: Store) -> None:
    states = [cell_state(cell, store) for cell in cells_of(study, inputs)]
    assert not any(state.done or state.error for state in states)
