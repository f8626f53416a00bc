from __future__ import annotations

from dataclasses import replace

import pytest

from condense_once.condensing import CONDENSERS
from condense_once.condensing.config import make_request
from condense_once.condensing.job import Job
from condense_once.condensing.matching import time_budget as budget
from condense_once.condensing.matching.network import Learner
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.matching.time_budget import BOOST, POOL, Times, fit, measure
from condense_once.condensing.problem import Problem
from condense_once.condensing.timetable import Tick, Timetable, timetable
from condense_once.data.source import Source
from condense_once.train.hardware import ComputeConfig

TIMES = Times(step=0.5, lesson=0.2, choice=0.003, network=0.01)


@pytest.fixture
def problem(source: Source) -> Problem:
    return Problem(source, ipc=2, factor=2)


def recipe(method: str) -> MatchingRecipe:
    return CONDENSERS.get(method).recipe((3, 32, 32), 10, 2)


def test_a_timetable_lists_every_tick_in_turn() -> None:
    table = Timetable(iterations=2, early=2, steps=2, classes=3, lesson=1)
    expected = []
    for iteration in range(2):
        expected += [Tick(iteration, 0, "early", batch) for batch in range(2)]
        expected += [Tick(iteration, 0, "class", label) for label in range(3)]
        expected += [Tick(iteration, 0, "lesson", 0)]
        expected += [Tick(iteration, 1, "class", label) for label in range(3)]  # after the last step there is no lesson
    assert [table.at(done) for done in range(table.total)] == expected
    assert [table.steps_before(tick) for tick in expected] == [0] * 6 + [1] * 3 + [2] * 6 + [3] * 3


@pytest.mark.parametrize("method", CONDENSERS.names())
def test_the_time_of_a_recipe_is_that_of_its_ticks(problem: Problem, method: str) -> None:
    short = replace(recipe(method), iterations=2, steps=12, early=1)
    table = timetable(problem, short)
    seconds = TIMES.choice * 20 * 3 if short.start == "representatives" else 0.0  # of 20 images of three classes
    for done in range(table.total):
        tick = table.at(done)
        seconds += TIMES.network if done % table.per_iteration == 0 else 0
        if tick.kind != "class":
            seconds += TIMES.lesson
        else:
            seconds += TIMES.step
            seconds += TIMES.choice * 20 if short.keep_batch and tick.step % short.keep_batch == 0 else 0
    assert TIMES.of(short, table) == pytest.approx(seconds)


@pytest.mark.parametrize("method", CONDENSERS.names())
@pytest.mark.parametrize("minutes", [5, 60])
def test_a_recipe_is_cut_to_about_the_time_given(problem: Problem, method: str, minutes: int) -> None:
    cut, sentence = fit(recipe(method), problem, TIMES, 60 * minutes)
    took = TIMES.of(cut, timetable(problem, cut))
    assert 0.5 * 60 * minutes < took <= 1.05 * 60 * minutes
    assert recipe(method).rate <= cut.rate <= BOOST[cut.distance] * recipe(method).rate
    assert f"{cut.iterations} networks" in sentence
    assert sentence.endswith(".")


def test_more_time_never_means_fewer_steps(problem: Problem) -> None:
    counts = []
    for minutes in (1, 5, 30, 120, 1000):
        cut, _ = fit(recipe("idc"), problem, TIMES, 60 * minutes)
        counts.append(cut.iterations * cut.steps)
    assert counts == sorted(counts)
    assert counts[0] >= 1


def test_a_recipe_that_fits_is_left_as_it_is(problem: Problem) -> None:
    whole = replace(recipe("dm"), iterations=3)
    cut, sentence = fit(whole, problem, TIMES, 3600)
    assert cut == whole
    assert "nothing is cut" in sentence


def test_a_run_without_networks_cannot_be_cut(problem: Problem) -> None:
    start = replace(recipe("dream"), iterations=0)
    cut, sentence = fit(start, problem, TIMES, 0.001)
    assert cut == start
    assert "nothing is cut" in sentence


def test_a_start_that_is_given_takes_no_time_and_is_not_called_typical(problem: Problem) -> None:
    given = replace(recipe("dream"), start="given")
    assert TIMES.start(given, timetable(problem, given)) == 0
    cut, sentence = fit(given, problem, TIMES, 600)
    assert (cut.start, cut.pool) == ("given", POOL)  # among which its batches are looked for
    assert "typical images" not in sentence


@pytest.mark.parametrize(("method", "early", "taught"), [("idc", 0, True), ("dm", 1, True), ("dm", 0, False)])
def test_each_part_is_measured_but_not_what_is_done_once_for_all_classes(
    source: Source, monkeypatch: pytest.MonkeyPatch, method: str, early: int, taught: bool
) -> None:
    changes = {"early": early, "real_batch": 4, "net_batch": 8}
    request = make_request(source, ipc=1, method=method, factor=1, net="convnet-d1-w8-bn", changes=changes)
    job = Job(source, request, ComputeConfig(compilation="off"))
    learner, matcher = job.make_parts(job.recipe)
    settled: list[int] = []
    monkeypatch.setattr(Learner, "settle_statistics", lambda *_: settled.append(1))
    times = measure(job.problem, job.recipe, learner, matcher, repeats=1)
    assert times.step > 0
    assert (times.lesson > 0) == taught
    assert not settled


def test_what_takes_long_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "ENOUGH", 0.0)
    calls: list[int] = []
    budget._best(lambda: calls.append(1), repeats=3)
    assert len(calls) == 2  # to warm up, and to measure


def test_in_haste_it_begins_with_typical_images(problem: Problem) -> None:
    cut, sentence = fit(recipe("idc"), problem, TIMES, 600)
    assert (cut.start, cut.pool) == ("representatives", POOL)
    assert "typical images" in sentence
    noise, _ = fit(recipe("dc"), problem, TIMES, 600)
    assert noise.start == "noise"
    kept, _ = fit(recipe("idc"), problem, TIMES, 600, fixed={"start"})
    assert kept.start == "first"


def test_two_processes_have_time_for_more(problem: Problem) -> None:
    alone, _ = fit(recipe("dm"), problem, TIMES, 600)
    shared, _ = fit(recipe("dm"), problem, TIMES, 600, processes=3)
    assert shared.iterations > 2 * alone.iterations


def test_what_was_set_by_hand_is_kept(problem: Problem) -> None:
    by_hand = replace(recipe("idc"), rate=0.5, steps=7, lesson_images=640)
    cut, _ = fit(by_hand, problem, TIMES, 600, fixed={"rate", "steps", "lesson_images"})
    assert (cut.rate, cut.steps, cut.lesson_images) == (0.5, 7, 640)
    assert cut.iterations < by_hand.iterations
