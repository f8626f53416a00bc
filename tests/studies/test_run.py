from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.studies.conftest import PLAIN

from condense_once.condensed.file import save
from condense_once.condensed.space import Space
from condense_once.errors import BadOption
from condense_once.evaluation.evaluate import evaluate
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.metrics import METRICS, Epochs, MetricConfig, ScoringRun
from condense_once.metrics.scoring_run import record_scoring_run
from condense_once.selection.rule import Rule
from condense_once.selection.select import rows_from_run
from condense_once.studies import run as running
from condense_once.studies.grid import Subject, cells_of
from condense_once.studies.jobs import EvaluateJob, Job, WatchJob, watch_job
from condense_once.studies.progress import standing
from condense_once.studies.run import Progress, run_study, scored_cells, state_of
from condense_once.studies.serialize import pack, unpack
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.hardware import ComputeConfig
from condense_once.train.images import training_data

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
    plain = ComputeConfig("float32", "off", workers=1)
    for state in found:
        settings = MetricConfig(scoring_epochs=3, lbpe_epochs=Epochs.range(0, 1), seed=state.cell.repeat)
        evidence = ScoringRun(data.labels)
        if state.cell.rule.metric == "lbpe":
            evidence = record_scoring_run(data, ["lbpe"], settings, net="convnet-d1-w8", seed=state.cell.repeat)
        rule = Rule.parse(state.cell.at("rule"))
        rows = np.sort(rows_from_run(data, rule, state.cell.patches, evidence, settings))
        assert state.selected is not None
        np.testing.assert_array_equal(state.selected.rows, rows)
        by_hand = evaluate(
            data.take(rows),
            test,
            protocol="tiny",
            net="convnet-d1-w8",
            repeats=1,
            seed=state.cell.repeat,
            compute=plain,
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
    store.forget_errors(standing(study, subjects, store).failed_keys)
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
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverged(evidence: ScoringRun, settings: MetricConfig) -> np.ndarray:
        return np.full(len(evidence), np.nan)

    monkeypatch.setitem(METRICS._entries, "aum", replace(METRICS.get("aum"), compute=diverged))
    found = run_study(study.replace(rules=("random", "aum")), subjects, store, make_engine())
    assert [state.done for state in found if state.cell.rule.name == "random"] == [True] * 4
    failed = {state.error for state in found if state.cell.rule.name == "aum"}
    assert len(failed) == 1
    assert "must return one finite score" in str(failed.pop())


def test_jobs_are_handed_out_while_others_are_selected(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if every selection took longer than one may be without a word."""
    happened: list[str] = []
    engine = make_engine()
    monkeypatch.setattr(running, "LISTEN", 0.0)
    monkeypatch.setattr(engine, "submit", lambda job, submit=engine.submit: (happened.append("job"), submit(job)))
    select = running._Run._select
    monkeypatch.setattr(running._Run, "_select", lambda run, cell: (happened.append("selection"), select(run, cell))[1])
    run_study(study.replace(rules=("random",)), subjects, store, engine)
    assert happened == ["selection", "job"] * 4


def test_scores_of_a_set_that_is_normalised_twice_are_those_of_such_a_training(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = replace(PROTOCOLS.get(study.protocol), name="twice", double_normalise=True)
    monkeypatch.setitem(PROTOCOLS._entries, "twice", twice)
    plain, again = (
        study.replace(rules=("yoco",), repeats=1),
        study.replace(rules=("yoco",), repeats=1, protocol="twice"),
    )
    for cell in cells_of(again, subjects):  # of pixels, which are normalised once by any protocol
        assert cell.watch == next(cells_of(plain, subjects)).watch
    space = Space("normalised", (0.5,) * 3, (0.25,) * 3)
    data = replace(subjects["tiny"].data, cells=subjects["tiny"].data.inputs().astype(np.float32), space=space)
    subjects["tiny"] = replace(subjects["tiny"], data=data)
    (cell, *_), (other, *_) = cells_of(again, subjects), cells_of(plain, subjects)
    assert cell.watch is not None
    assert other.watch is not None
    assert (cell.watch.normalise_again, other.watch.normalise_again) == (True, False)
    assert "normalised" not in other.facts["scores"]
    assert cell.facts["scores"]["normalised"] == "twice"
    assert cell.watch.key != other.watch.key
    run_study(again, subjects, store, make_engine())
    found = unpack(store.evidence(cell.watch.key) or b"")
    by_hand = replace(training_data(data), images=(torch.from_numpy(data.cells) - 0.5) / 0.25)
    expected = record_scoring_run(by_hand, ["lbpe"], cell.settings, net="convnet-d1-w8", compute=PLAIN)
    assert found.dynamics is not None
    assert expected.dynamics is not None
    assert found.dynamics.epochs == 3
    np.testing.assert_array_equal(found.dynamics.error[:2], expected.dynamics.error)


def test_a_precision_that_is_not_the_usual_one_is_computed_in_and_part_of_every_key(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    single = study.replace(rules=("yoco",), sizes=("1",), repeats=1)
    (usual,), (half,) = (
        cells_of(single.replace(precision=precision), subjects) for precision in ("float32", "bfloat16")
    )
    assert usual.watch is not None
    assert half.watch is not None
    assert not {usual.key, usual.watch.key} & {half.key, half.watch.key}
    assert all("precision" not in facts for facts in (usual.facts, usual.watch.facts, usual.evaluated_by))
    (state,) = run_study(single.replace(precision="bfloat16"), subjects, store, make_engine())
    assert state.measured is not None
    assert state.measured.result is not None
    assert state.measured.result["machine"]["computed_in"] == "bfloat16"  # though the engine was told float32


def test_subset_runs_count_as_work(study: Study, subjects: dict[str, Subject]) -> None:
    plain, long = (
        next(cells_of(study.replace(rules=(rule,), training=10), subjects)) for rule in ("lbpe-clean", "memorization")
    )
    assert plain.watch is not None
    assert long.watch is not None
    ratio = watch_job(long, long.watch).work / watch_job(plain, plain.watch).work
    assert ratio == pytest.approx(1 + 10 * 100 * 0.7 / 10)


def test_a_study_of_scores_may_place_its_sets_anywhere(study: Study, subjects: dict[str, Subject]) -> None:
    pictures = study.replace(sizes=(), sets=("tiny", "other"), rows=("rule",), columns=("set",), shown="patches")
    both = {**subjects, "other": subjects["tiny"]}
    assert [cell.at("set") for cell in scored_cells(pictures, both)] == ["tiny", "other"]


def test_an_engine_is_closed_whatever_happens(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, closed = make_engine(), []
    monkeypatch.setattr(engine, "close", lambda: closed.append(True))
    with pytest.raises(BadOption, match="patches to choose from, fewer than"):
        run_study(study.replace(sizes=("9",)), subjects, store, engine)
    assert closed


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
    settings = MetricConfig(scoring_epochs=2, lbpe_epochs=Epochs.all(), el2n_epochs=1, subset_runs=2, subset_epochs=1)
    names = METRICS.names()
    evidence = record_scoring_run(subject.data, names, settings, net="convnet-d1-w8")
    again = unpack(pack(evidence))
    assert again.parts == evidence.parts
    for info in METRICS:
        np.testing.assert_array_equal(info.score(again, settings), info.score(evidence, settings))


def test_a_study_from_python_is_known_to_its_store(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make, tmp_path: Path
) -> None:
    set_file = tmp_path / "mine.safetensors"
    save(subjects["tiny"].data, set_file)
    mine = study.replace(sets=(os.path.relpath(set_file),), rules=("random",), repeats=1)
    run_study(mine, {mine.sets[0]: subjects["tiny"]}, store, make_engine())
    (spec,) = store.studies()
    assert Study.of_spec(spec["study"]) == mine.replace(sets=(str(set_file.resolve()),), precision="float32")


def test_patches_were_scored_by_the_run_that_chose_them(
    study: Study, subjects: dict[str, Subject], store: Store, make_engine: Make
) -> None:
    first = run_study(study.replace(rules=("yoco",)), subjects, store, make_engine())
    engine = make_engine()
    again = run_study(study.replace(rules=("yoco",), training=5), subjects, store, engine)
    assert not engine.done
    assert [state.scoring for state in again] == [state.scoring for state in first]
    assert {state.scoring.epochs for state in again if state.scoring is not None} == {3}


def test_states_are_known_without_running(study: Study, subjects: dict[str, Subject], store: Store) -> None:
    states = [state_of(cell, store) for cell in cells_of(study, subjects)]
    assert not any(state.done or state.error for state in states)
