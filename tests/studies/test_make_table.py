from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isnan
from statistics import mean, stdev

import numpy as np
import pytest

from condense_once.studies.grid import Cell, StudyInput, cells_of
from condense_once.studies.jobs import scoring_job
from condense_once.studies.make_table import make_table
from condense_once.studies.state import CellState
from condense_once.studies.store import StoredEvaluation, StoredScoringRun, StoredSelection
from condense_once.studies.study import Study
from condense_once.studies.table import Entry, PublishedNumber, Table

ACCURACIES = {  # by rule, size and repeat
    ("random", "1"): (0.30, 0.32, 0.31),
    ("random", "2"): (0.40, 0.41, 0.45),
    ("yoco", "1"): (0.42, 0.43, 0.42),
    ("yoco", "2"): (0.41, 0.44, 0.43),
}


def known(
    study: Study,
    inputs: Mapping[str, StudyInput],
    missing: tuple[str, str, int] | None = None,
    accuracies: Mapping[tuple[str, str], tuple[float, ...]] = ACCURACIES,
) -> list[CellState]:
    def state(cell: Cell) -> CellState:
        rule, size = cell.at("rule"), cell.at("size")
        if (rule, size, cell.repeat) == missing:
            return CellState(cell)
        result = {
            "accuracy": accuracies[rule, size][cell.repeat],
            "test": "tiny-test",
            "test_images": 30,
            "machine": {"processor": "a fast one"},
            "versions": {"torch": "2.0"},
        }
        selected = StoredSelection(np.arange(cell.patches), f"{rule} {size} {cell.repeat}", None)
        return CellState(cell, selected, StoredEvaluation(result, None, 1.0, 2.0, "2026-01-02T03:04:05"))

    return [state(cell) for cell in cells_of(study, inputs)]


def entry(table: Table, label: str, column: str) -> Entry:
    row = next(row for row in table.rows if row.labels[-1] == label)
    return row.entries[table.columns.index(column)]


@pytest.fixture
def three(study: Study) -> Study:
    return study.replace(repeats=3, scoring_runs=3)


def test_entries_are_means_with_the_sample_std(three: Study, inputs: dict[str, StudyInput]) -> None:
    table = make_table(three, known(three, inputs))
    assert (table.axes, table.columns) == (("set", "size"), ("random", "yoco"))
    assert [row.labels for row in table.rows] == [("tiny", label) for label in ("1", "2", "Avg.", "Diff.")]
    for (rule, size), runs in ACCURACIES.items():
        found = entry(table, size, rule)
        assert (found.mean, found.std) == (pytest.approx(mean(runs)), pytest.approx(stdev(runs)))
        assert (len(found.runs), found.expected, found.seconds) == (3, 3, 6.0)


def test_averages_are_over_sizes_repeat_by_repeat_and_differences_against_ours(
    three: Study, inputs: dict[str, StudyInput]
) -> None:
    table = make_table(three, known(three, inputs))
    averages = {}
    for rule in ("random", "yoco"):
        averages[rule] = [(a + b) / 2 for a, b in zip(ACCURACIES[rule, "1"], ACCURACIES[rule, "2"], strict=True)]
        assert list(entry(table, "Avg.", rule).runs.values()) == pytest.approx(averages[rule])
    assert entry(table, "Diff.", "random").mean == pytest.approx(mean(averages["random"]) - mean(averages["yoco"]))
    assert entry(table, "Diff.", "yoco").mean == 0


def test_the_best_of_a_place_is_marked_and_ours_only_where_it_is_ahead_beyond_noise(
    three: Study, inputs: dict[str, StudyInput]
) -> None:
    table = make_table(three, known(three, inputs))
    assert [(entry(table, size, "yoco").best, entry(table, size, "yoco").ahead) for size in ("1", "2")] == [
        (True, True),
        (True, False),
    ]
    assert not any(entry(table, size, "random").best or entry(table, size, "random").ahead for size in ("1", "2"))


def test_averages_are_judged_like_sizes(three: Study, inputs: dict[str, StudyInput]) -> None:
    table = make_table(three, known(three, inputs))
    assert [(found.best, found.ahead) for found in (entry(table, "Avg.", rule) for rule in ("random", "yoco"))] == [
        (False, False),
        (True, True),
    ]
    assert table.best == {(0, 3), (1, 3), (2, 3)}  # beside two labels


def test_all_patches_are_no_contest_and_do_not_count_in_averages(three: Study, inputs: dict[str, StudyInput]) -> None:
    with_all = three.replace(sizes=("1", "2", "all"))
    accuracies = {**ACCURACIES, ("random", "100 %"): (0.6, 0.6, 0.6), ("yoco", "100 %"): (0.6, 0.6, 0.6)}
    table = make_table(with_all, known(with_all, inputs, accuracies=accuracies))
    plain = make_table(three, known(three, inputs))
    for label in ("Avg.", "Diff."):
        assert entry(table, label, "random").mean == pytest.approx(entry(plain, label, "random").mean)
    assert entry(table, "100 %", "yoco").mean == pytest.approx(0.6)
    assert not any(entry(table, "100 %", rule).best for rule in ("random", "yoco"))
    alone = three.replace(sizes=("all",))
    assert [row.labels[-1] for row in make_table(alone, known(alone, inputs, accuracies=accuracies)).rows] == ["100 %"]


def test_a_rule_is_ahead_only_by_the_repeats_that_all_have(three: Study, inputs: dict[str, StudyInput]) -> None:
    rules = three.replace(rules=("random", "lbpe", "yoco"), sizes=("1",))
    accuracies = {
        ("random", "1"): (0.30, 0.30, 0.30),
        ("lbpe", "1"): (0.45, 0.44, 0.10),  # ahead of ours in the repeats that random has as well
        ("yoco", "1"): (0.42, 0.43, 0.42),
    }
    table = make_table(rules, known(rules, inputs, missing=("random", "1", 2), accuracies=accuracies))
    assert [entry(table, "1", rule).best for rule in ("random", "lbpe", "yoco")] == [False, True, False]
    assert not entry(table, "1", "yoco").ahead


def test_a_table_of_balance_says_what_it_gains(three: Study, inputs: dict[str, StudyInput]) -> None:
    balance = three.replace(
        rules=("lbpe-balanced", "lbpe-unbalanced"), sizes=("1",), rows=("set", "size", "method"), columns=("balance",)
    )
    accuracies = {("yoco", "1"): (0.42, 0.43, 0.42), ("lbpe", "1"): (0.40, 0.40, 0.40)}
    table = make_table(balance, known(balance, inputs, accuracies=accuracies), lambda _: PublishedNumber(0.4))
    assert table.columns == ("balanced", "not balanced", "gain")
    (row,) = table.rows
    assert row.entries[2].difference == pytest.approx(0.07 / 3)
    assert row.entries[2].published == (0.0, None)


def test_rules_in_rows_are_compared_within_columns(three: Study, inputs: dict[str, StudyInput]) -> None:
    turned = three.replace(rows=("rule",), columns=("size",))
    table = make_table(turned, known(turned, inputs))
    assert [row.labels for row in table.rows] == [("random",), ("yoco",)]
    assert table.columns == ("1", "2", "Avg.")
    assert [each.best for each in table.rows[1].entries] == [True, True, True]


def test_missing_runs_are_noted(three: Study, inputs: dict[str, StudyInput]) -> None:
    table = make_table(three, known(three, inputs, missing=("yoco", "1", 2)))
    found = entry(table, "1", "yoco")
    assert (len(found.runs), found.expected) == (2, 3)
    assert len(entry(table, "Avg.", "yoco").runs) == 2
    assert "1 of 12 runs are missing, 0 failed." in table.notes
    nothing = make_table(three, [CellState(cell) for cell in cells_of(three, inputs)])
    assert isnan(entry(nothing, "1", "yoco").mean)
    assert not entry(nothing, "1", "yoco").best


def test_published_numbers_stand_beside_ours_with_their_own_average(
    three: Study, inputs: dict[str, StudyInput]
) -> None:
    paper = {
        ("random", "1"): PublishedNumber(0.28, 0.01),
        ("random", "2"): PublishedNumber(0.37),
        ("yoco", "1"): PublishedNumber(0.42),
    }
    table = make_table(three, known(three, inputs), lambda place: paper.get((place["rule"], place["size"])))
    assert entry(table, "1", "random").published == (0.28, 0.01)
    assert entry(table, "Avg.", "random").published == (pytest.approx(0.325), None)
    assert entry(table, "Avg.", "yoco").published is None  # one of its sizes is not published
    assert entry(table, "Diff.", "random").published is None


def test_rules_are_judged_by_the_repeats_that_all_have(three: Study, inputs: dict[str, StudyInput]) -> None:
    table = make_table(three, known(three, inputs, missing=("random", "2", 0)))
    assert entry(table, "2", "random").mean > entry(table, "2", "yoco").mean  # (0.41 + 0.45) / 2 against all three
    assert entry(table, "2", "yoco").best is True  # (0.44 + 0.43) / 2
    assert entry(table, "2", "random").best is False


def test_a_rule_that_failed_is_no_rival(three: Study, inputs: dict[str, StudyInput]) -> None:
    rules = three.replace(rules=("random", "yoco", "aum"))
    states = {state.cell.key: state for state in known(three, inputs)}
    states.update(
        {cell.key: CellState(cell, error="it broke") for cell in cells_of(rules, inputs) if cell.key not in states}
    )
    table = make_table(rules, list(states.values()))
    assert (entry(table, "1", "yoco").best, entry(table, "1", "yoco").ahead) == (True, True)
    assert not entry(table, "1", "aum").best


def test_differences_are_over_the_repeats_that_both_have(three: Study, inputs: dict[str, StudyInput]) -> None:
    table = make_table(three, known(three, inputs, missing=("random", "2", 2)))
    by_repeat = [
        mean(ACCURACIES["random", size][repeat] for size in ("1", "2"))
        - mean(ACCURACIES["yoco", size][repeat] for size in ("1", "2"))
        for repeat in (0, 1)
    ]
    assert entry(table, "Diff.", "random").mean == pytest.approx(mean(by_repeat))


def test_one_rule_in_one_run_has_neither_a_difference_nor_a_spread(study: Study, inputs: dict[str, StudyInput]) -> None:
    single = study.replace(repeats=1, scoring_runs=1, rules=("yoco",))
    table = make_table(single, known(single, inputs))
    assert [row.labels for row in table.rows] == [("tiny", label) for label in ("1", "2", "Avg.")]
    assert table.notes[0].startswith("Accuracy in %, n = 1 run, protocol tiny-")


def test_entries_say_what_they_were_tested_on(three: Study, inputs: dict[str, StudyInput]) -> None:
    table = make_table(three, known(three, inputs))
    assert {each.test for row in table.rows for each in row.entries} == {"tiny-test"}
    assert table.protocol.startswith("tiny-")


def test_notes_say_how_it_was_measured(three: Study, inputs: dict[str, StudyInput]) -> None:
    notes = " ".join(make_table(three, known(three, inputs)).notes)
    assert "tested on 30 images of tiny-test." in notes
    assert "mean ± std over n = 3 runs, protocol tiny-" in notes
    assert "* yoco is better than every other rule" in notes
    assert "Measured 2026-01-02 on a fast one with torch 2.0." in notes
    assert "Scored" not in notes
    alone = three.replace(rules=("random",))
    assert "better" not in " ".join(make_table(alone, known(alone, inputs)).notes)


def test_notes_say_how_patches_were_scored_and_what_that_cost(three: Study, inputs: dict[str, StudyInput]) -> None:
    def scored(cell: Cell) -> StoredScoringRun | None:
        job = scoring_job(cell)
        return None if job is None else StoredScoringRun(job.key, 3, 60.0, "2026-01-01T10:00:00")

    states = [replace(state, scoring_run=scored(state.cell)) for state in known(three, inputs)]
    notes = " ".join(make_table(three, states).notes)
    assert "Scored by 3 runs of 3 epochs of convnet-d1-w8 in 3 min 0 s, 2026-01-01." in notes
    whole = three.replace(rules=("aum", "entropy", "yoco"))
    found = make_table(whole, [CellState(cell, scoring_run=scored(cell)) for cell in cells_of(whole, inputs)])
    assert "; the authors score aum and entropy by 1000 epochs." in " ".join(found.notes)


def test_notes_say_which_variant_of_a_selector_is_shown(three: Study, inputs: dict[str, StudyInput]) -> None:
    study = three.replace(rules=("ccs-fixed", "ssp", "ssp-fixed", "yoco"))
    notes = make_table(study, [CellState(cell) for cell in cells_of(study, inputs)]).notes
    assert "ccs-fixed: CCS as in YOCO's program: the hardest of each stratum, nothing sampled." in notes
    assert "ssp: prototypes: the patch nearest to the centre of each k-means cluster, none twice." in notes
    assert "ssp-fixed: SSP as in YOCO's program: plain k-means, and a patch may be kept more than once." in notes
    assert not any(note.startswith("yoco:") for note in notes)
