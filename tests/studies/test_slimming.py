"""The rule `slim`: patches that another rule keeps are refined into a new set, which is evaluated."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.studies.conftest import PLAIN

from condense_once.condensed.file import from_bytes, save
from condense_once.condensed.set import Ranking
from condense_once.condensing.slim import slim
from condense_once.data.arrays import save_arrays
from condense_once.errors import BadOption, CondenseOnceError
from condense_once.evaluation.evaluate import evaluate
from condense_once.selection.rule import Rule
from condense_once.studies import grid, study_rule
from condense_once.studies.failures import describe_damage, describe_failures
from condense_once.studies.grid import StudyInput
from condense_once.studies.inputs import open_inputs
from condense_once.studies.jobs import Job, SlimmingJob
from condense_once.studies.local_engine import LocalEngine
from condense_once.studies.make_table import make_table
from condense_once.studies.plan import plan_study
from condense_once.studies.scheduler import run_missing
from condense_once.studies.state import study_state
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.studies.study_rule import Slimming, StudyRule

Make = Callable[..., Any]


@pytest.fixture
def slimmed(study: Study, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study whose sets are slimmed in a moment, by a small network that is hardly trained."""
    monkeypatch.setattr(study_rule, "SHORT", {**study_rule.SHORT, "expert_epochs": 4})
    monkeypatch.setattr(grid, "narrow_net", lambda shape: "convnet-d1-w8")
    return study.replace(rules=("slim-2",), nets=("convnet-d1-w8",))


def kinds(engine: Any) -> Counter[str]:
    return Counter(type(job).__name__ for job in engine.done)


@pytest.mark.parametrize(
    ("name", "rule", "slimming"),
    [
        ("slim", "yoco", Slimming()),
        ("SLIM-nested", "yoco", Slimming(nested=True)),
        ("slim-40", "yoco", Slimming(steps=40)),
        ("random-balanced+slim-nested-7", "random-balanced", Slimming(nested=True, steps=7)),
        ("stored + slim", "stored", Slimming()),
    ],
)
def test_a_name_says_what_is_slimmed_and_how(name: str, rule: str, slimming: Slimming) -> None:
    parsed = StudyRule.parse(name)
    assert parsed == StudyRule(Rule.parse(rule), slimming)
    assert StudyRule.parse(parsed.name) == parsed


@pytest.mark.parametrize("name", ["slim-fast", "slim-0", "slimmer", "random+slim", "yoco+", "+slim+slim", "slim+yoco"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(CondenseOnceError):
        StudyRule.parse(name)


def test_it_measures_what_slimming_and_evaluating_by_hand_do(
    slimmed: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    found = run_missing(slimmed.replace(sizes=("2",)), inputs, store, make_engine())
    data, test = inputs["tiny"].data, inputs["tiny"].test
    for state in found:
        assert state.selection is not None
        rows = state.selection.rows
        assert data.labels[rows].tolist() == [0, 1, 2, 0, 1, 2]  # best first
        order = [*rows.tolist(), *sorted(set(range(len(data))) - set(rows.tolist()))]
        whole = replace(data.take(np.array(order)), ranking=Ranking("lbpe"))
        settings: Any = {"minutes": None, "net": "convnet-d1-w8", "seed": state.cell.repeat}
        by_hand = slim(whole, ipc=2, overrides=Slimming(steps=2).recipe, compute=PLAIN, **settings)
        kept = from_bytes(store.slimmed_set(str(state.slimming_key)) or b"", "kept")
        assert np.array_equal(kept.cells, by_hand.cells)
        result = evaluate(
            by_hand,
            test,
            protocol="tiny",
            net="convnet-d1-w8",
            repeats=1,
            seed=state.cell.repeat,
            compute=replace(PLAIN, workers=1),
        )
        assert state.accuracy == result.runs[0].accuracy


def test_a_set_is_slimmed_once_for_each_size_and_scoring_run(
    slimmed: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    engine = make_engine()
    run_missing(slimmed.replace(repeats=4), inputs, store, engine)
    assert kinds(engine) == {"ScoringJob": 2, "SlimmingJob": 4, "EvaluationJob": 8}
    again = make_engine()
    run_missing(slimmed.replace(repeats=4), inputs, store, again)
    assert not again.done
    other = make_engine()
    run_missing(slimmed.replace(nets=("convnet-d1-w16",)), inputs, store, other)
    assert kinds(other) == {"EvaluationJob": 4}
    steps = make_engine()
    run_missing(slimmed.replace(rules=("slim-3",)), inputs, store, steps)
    assert kinds(steps) == {"SlimmingJob": 4, "EvaluationJob": 4}


def test_a_nested_slimmed_set_serves_all_sizes_as_prefixes(
    slimmed: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    engine = make_engine()
    nested = slimmed.replace(rules=("slim-nested-2",), sizes=("1", "2", "3", "4"), repeats=1)
    found = run_missing(nested, inputs, store, engine)
    assert kinds(engine) == {"ScoringJob": 1, "SlimmingJob": 1, "EvaluationJob": 4}
    assert len({state.slimming_key for state in found[:3]}) == 1
    kept = from_bytes(store.slimmed_set(str(found[0].slimming_key)) or b"", "kept")
    assert (len(kept), kept.is_nested) == (9, True)
    assert found[3].slimming_key is None  # all patches: nothing to slim
    prefix = evaluate(
        kept.take(slice(6)),
        inputs["tiny"].test,
        protocol="tiny",
        net="convnet-d1-w8",
        repeats=1,
        compute=replace(PLAIN, workers=1),
    )
    assert found[1].accuracy == prefix.runs[0].accuracy


def test_a_failed_slimming_is_recorded_and_can_be_retried(
    slimmed: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    def spoil(job: Job) -> None:
        if isinstance(job, SlimmingJob) and len(job.rows) == 3:
            raise ValueError("diverged")

    run_missing(slimmed, inputs, store, make_engine(spoil))
    state = study_state(slimmed, inputs, store)
    assert (state.done, state.failed, state.missing) == (2, 2, 0)
    assert list(describe_failures(state)) == ["2 runs failed (slim-2 at 1, repeats 0–1): diverged"]
    store.forget_errors(state.failed_keys)
    run_missing(slimmed, inputs, store, make_engine(), among=state.failed_cells)
    assert study_state(slimmed, inputs, store).done == 4


def test_a_damaged_slimmed_set_is_made_again(
    slimmed: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make
) -> None:
    one = slimmed.replace(sizes=("1",), repeats=1)
    (state,) = run_missing(one, inputs, store, make_engine())
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("update evidence set content = x'00' where key = ?", (state.slimming_key,))
        db.execute("delete from evaluations")
    found = study_state(one, inputs, store)
    assert "slimmed set in the store is damaged" in next(iter(describe_damage(found)))
    engine = make_engine()
    (again,) = run_missing(one, inputs, store, engine)
    assert kinds(engine) == {"SlimmingJob": 1, "EvaluationJob": 1}
    assert again.accuracy == state.accuracy


def test_processes_slim_to_the_same_bits(
    slimmed: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make, tmp_path: Path
) -> None:
    one = slimmed.replace(sizes=("1",), repeats=1, rules=("random-balanced+slim-2",))
    (here,) = run_missing(one, inputs, store, make_engine())
    with closing(Store(tmp_path / "other.sqlite")) as other:
        (there,) = run_missing(one, inputs, other, LocalEngine(list(inputs.values()), PLAIN, 1))
        kept = [from_bytes(each.slimmed_set(str(here.slimming_key)) or b"", "kept") for each in (store, other)]
    assert np.array_equal(kept[0].cells, kept[1].cells)
    assert here.accuracy == there.accuracy


def test_slimming_is_planned_and_noted(
    slimmed: Study, inputs: dict[str, StudyInput], store: Store, make_engine: Make, tmp_path: Path
) -> None:
    save(inputs["tiny"].data, tmp_path / "tiny.safetensors")
    save_arrays(inputs["tiny"].test, tmp_path / "test.npz")
    mine = slimmed.replace(sets=(str(tmp_path / "tiny.safetensors"),), test=str(tmp_path / "test.npz"), repeats=4)
    planned = plan_study(mine, store=tmp_path / "plan.sqlite")
    assert (planned.scoring_runs, planned.slimmings, planned.evaluations) == (2, 4, 8)
    more = plan_study(mine.replace(rules=("slim-200",)), store=tmp_path / "plan.sqlite")
    assert more.seconds > planned.seconds > 0
    nested = plan_study(mine.replace(rules=("slim-nested-2",)), store=tmp_path / "plan.sqlite")
    assert nested.slimmings == 2
    states = run_missing(slimmed, inputs, store, make_engine())
    (note,) = [note for note in make_table(slimmed, states).notes if "slimmed" in note]
    assert note.startswith(
        "For slim-2, 4 sets were slimmed by tgdd, in 2 steps with convnet-d1-w8 and without real images"
    )


def test_only_whole_images_can_be_slimmed(slimmed: Study, inputs: dict[str, StudyInput], tmp_path: Path) -> None:
    save(inputs["tiny"].data, tmp_path / "tiny.safetensors")
    save_arrays(inputs["tiny"].test, tmp_path / "test.npz")
    mine = slimmed.replace(sets=(str(tmp_path / "tiny.safetensors"),), test=str(tmp_path / "test.npz"))
    with pytest.raises(BadOption, match="whole images per class, but 60 % of tiny is 7 patches"):
        open_inputs(mine.replace(sizes=("60%",)))
    with pytest.raises(BadOption, match="not ranked"):
        open_inputs(mine.replace(rules=("stored",)))
