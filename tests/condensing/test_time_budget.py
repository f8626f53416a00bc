from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from condense_once.condensing import CONDENSERS, item_timing, matching
from condense_once.condensing.condenser import Task
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.distributed import World
from condense_once.condensing.item_timing import sample_times
from condense_once.condensing.matching import time_budget
from condense_once.condensing.matching.loop import MatchingCondenser
from condense_once.condensing.matching.network import MatchingNetwork
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.matching.schedule import Schedule, WorkItem
from condense_once.condensing.matching.time_budget import LR_BOOST, POOL, ItemTimes, measure, shorten
from condense_once.data.source import Source
from condense_once.data.split import Rows
from condense_once.errors import BadOption
from condense_once.text import human_time, plural
from condense_once.train.compute_config import ComputeConfig

TIMES = ItemTimes(class_step=0.5, net_update=0.2, selection=0.003, network=0.01)
Build = Callable[..., MatchingCondenser]


@pytest.fixture
def build(source: Source) -> Build:
    """The condenser of a method for three classes of 20 tiny images."""

    def make(method: str, *, processes: int = 1, net: str = "convnet-d1-w8", **overrides: Any) -> MatchingCondenser:
        config = CondenseConfig.for_source(source, method=method, ipc=2, factor=2, net=net, overrides=overrides)
        task = Task(source, config, ComputeConfig(compilation="off"), World(0, processes))
        condenser = CONDENSERS.get(method).build(task, None)
        assert isinstance(condenser, MatchingCondenser)
        return condenser

    return make


def paper(method: str) -> MatchingRecipe:
    recipe: MatchingRecipe = getattr(getattr(matching, method), method)((3, 32, 32), 10, 2)
    return recipe


def with_recipe(condenser: MatchingCondenser, recipe: MatchingRecipe) -> MatchingCondenser:
    condenser.adopt(recipe)
    return condenser


def test_a_schedule_lists_every_work_item_in_turn() -> None:
    schedule = Schedule(iterations=2, pretrain=2, steps=2, classes=3, net_update=1)
    expected = []
    for iteration in range(2):
        expected += [WorkItem(iteration, 0, "pretrain", batch) for batch in range(2)]
        expected += [WorkItem(iteration, 0, "class_step", label) for label in range(3)]
        expected += [WorkItem(iteration, 0, "net_update", 0)]
        expected += [WorkItem(iteration, 1, "class_step", label) for label in range(3)]  # and no update after the last
    assert [schedule.at(done) for done in range(schedule.total)] == expected
    assert [schedule.steps_before(item) for item in expected] == [0] * 6 + [1] * 3 + [2] * 6 + [3] * 3


@pytest.mark.parametrize("method", matching.__all__)
def test_the_time_of_a_run_is_that_of_its_work_items(build: Build, method: str) -> None:
    short = replace(paper(method), iterations=2, steps=12, pretrain_epochs=1)
    condenser = with_recipe(build(method), short)
    schedule = condenser.schedule
    seconds = TIMES.selection * 20 * 3 if short.init == "representatives" else 0.0  # of 20 images of three classes
    for done in range(schedule.total):
        item = schedule.at(done)
        seconds += TIMES.network if done % schedule.per_iteration == 0 else 0
        if item.kind != "class_step":
            seconds += TIMES.net_update
        else:
            seconds += TIMES.class_step
            seconds += TIMES.selection * 20 if short.reselect_every and item.step % short.reselect_every == 0 else 0
    assert TIMES.total(short, schedule, 20) == pytest.approx(seconds)


@pytest.mark.parametrize("method", matching.__all__)
@pytest.mark.parametrize("minutes", [5, 60])
def test_a_recipe_is_cut_to_about_the_time_given(build: Build, method: str, minutes: int) -> None:
    condenser = with_recipe(build(method), paper(method))
    cut, decision = shorten(condenser, TIMES, 60 * minutes)
    seconds = time_budget._total(condenser, cut, TIMES)
    assert 0.5 * 60 * minutes < seconds <= 1.05 * 60 * minutes
    assert paper(method).image_lr <= cut.image_lr <= LR_BOOST[cut.distance] * paper(method).image_lr
    assert plural(cut.iterations, "network") in decision
    assert decision.endswith(".")


def test_more_time_never_means_fewer_steps(build: Build) -> None:
    condenser, counts = with_recipe(build("idc"), paper("idc")), []
    for minutes in (1, 5, 30, 120, 1000):
        cut, _ = shorten(condenser, TIMES, 60 * minutes)
        counts.append(cut.iterations * cut.steps)
    assert counts == sorted(counts)
    assert counts[0] >= 1


def test_a_recipe_that_fits_is_left_as_it_is(build: Build) -> None:
    whole = replace(paper("dm"), iterations=3)
    cut, decision = shorten(with_recipe(build("dm"), whole), TIMES, 3600)
    assert cut == whole
    assert "nothing is cut" in decision


def test_a_run_without_networks_cannot_be_cut(build: Build) -> None:
    init = replace(paper("dream"), iterations=0)
    cut, decision = shorten(with_recipe(build("dream"), init), TIMES, 0.001)
    assert cut == init
    assert "nothing is cut" in decision


def test_a_given_init_takes_no_time_and_is_not_called_representative(build: Build) -> None:
    given = replace(paper("dream"), init="given")
    condenser = with_recipe(build("dream"), given)
    assert TIMES.init(given, condenser.schedule, 20) == 0
    cut, decision = shorten(condenser, TIMES, 600)
    assert (cut.init, cut.pool) == ("given", POOL)  # from which its batches are selected
    assert "representatives" not in decision


@pytest.mark.parametrize(("method", "pretrain", "trained"), [("idc", 0, True), ("dm", 1, True), ("dm", 0, False)])
def test_each_kind_of_work_is_measured_but_not_what_is_done_once_for_all_classes(
    build: Build, monkeypatch: pytest.MonkeyPatch, method: str, pretrain: int, trained: bool
) -> None:
    condenser = build(method, net="convnet-d1-w8-bn", pretrain_epochs=pretrain, real_batch=4, net_batch=8)
    calibrated: list[int] = []
    monkeypatch.setattr(MatchingNetwork, "calibrate_batch_norm", lambda *_: calibrated.append(1))
    times = measure(condenser)
    assert times.class_step > 0
    assert (times.net_update > 0) == trained
    assert not calibrated
    assert condenser.done == 0
    assert not condenser.images.any()


class Clock:
    """Time that passes only while something works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in (time_budget, item_timing):
            monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def work(self, *seconds: float) -> Callable[[], None]:
        """What takes so long the first time, the second time, …"""
        left = iter(seconds)

        def run() -> None:
            self.now += next(left)

        return run


def test_the_warm_up_does_not_count_and_what_takes_long_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert sample_times(clock.work(5, 0.5, 0.75, 0.25), compiles=True) == [0.5, 0.75, 0.25]
    assert sample_times(clock.work(5, 2), compiles=True) == [2]


def test_when_the_time_for_measuring_is_up_the_warm_up_counts_unless_it_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    assert sample_times(clock.work(0.5), deadline=0.25) == [0.5]
    assert sample_times(clock.work(5, 0.5), deadline=0.25, compiles=True) == [0.5]


def test_a_budget_is_refused_after_one_class_step_if_they_are_too_slow_for_it(
    make_source: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clock, worked = make_source(classes=10, side=96), Clock(monkeypatch), []

    def advance(*_: object) -> None:
        worked.append("class step")
        clock.now += 24

    monkeypatch.setattr(time_budget, "_advance", advance)
    monkeypatch.setattr(time_budget, "_forward", lambda *_: None)
    config = CondenseConfig.for_source(source, method="idc", ipc=1, minutes=2, net="resnet10-ap")
    task = Task(source, config, ComputeConfig(compilation="off"), World())
    condenser = CONDENSERS.get("idc").build(task, None)
    with pytest.raises(BadOption) as refused:
        condenser.fit_to_time(120)
    assert worked == ["class step"]
    assert str(refused.value) == (
        "One step of every class takes about 4 min 0 s here, but after starting only 1 min 36 s is left of `minutes` 2;"
        " allow `minutes` 6 or more, or make the images smaller (`size` 64), or choose a narrower network (`net` convnet-d5-w32)."
    )


def test_a_doubtful_budget_is_refused_after_a_class_step_on_a_few_images(
    make_source: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clock, batches = make_source(classes=10), Clock(monkeypatch), []

    def advance(twin: MatchingCondenser, _: int) -> None:
        batches.append(twin.recipe.real_batch)
        clock.now += 10

    def forward(_: MatchingCondenser, rows: Rows) -> None:
        clock.now += 0.125 * len(rows)

    monkeypatch.setattr(time_budget, "_advance", advance)
    monkeypatch.setattr(time_budget, "_forward", forward)
    config = CondenseConfig.for_source(source, method="idc", ipc=1, minutes=2, net="convnet-d1-w8")
    condenser = CONDENSERS.get("idc").build(Task(source, config, ComputeConfig(compilation="off"), World()), None)
    # Ten classes; passes of twelve of twenty images in 4.5 s, and 10 s for eight of them with the synthetic ones.
    with pytest.raises(BadOption, match="takes at least 2 min 25 s here, but after starting only 1 min 48 s is left"):
        condenser.fit_to_time(120)
    assert batches == [time_budget.PROBED]


@pytest.mark.parametrize(("method", "passes"), [("idc", 3), ("dm", 1)])
def test_a_budget_far_too_short_is_refused_before_the_first_class_step(
    build: Build, method: str, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)

    def forward(_: MatchingCondenser, rows: Rows) -> None:
        clock.now += len(rows)

    monkeypatch.setattr(time_budget, "_forward", forward)
    monkeypatch.setattr(time_budget, "_advance", lambda *_: pytest.fail("a class step was made"))
    least = 3 * passes * 20  # three classes of twenty images, a second per image
    with pytest.raises(BadOption, match=f"One step of every class takes at least {human_time(least)} here"):
        build(method).fit_to_time(least + 15)  # of which the measurement takes 16


@pytest.mark.parametrize(
    ("selection", "init", "pool"), [(0.0, "representatives", POOL), (0.0625, "representatives", 320)]
)
def test_k_means_takes_at_most_a_tenth_of_the_time(build: Build, selection: float, init: str, pool: int) -> None:
    condenser = with_recipe(build("idc"), paper("idc"))
    cut, _ = shorten(condenser, replace(TIMES, selection=selection), 600)
    assert (cut.init, cut.pool) == (init, pool)


def test_without_time_for_k_means_a_run_starts_from_the_first_images_as_in_the_paper(build: Build) -> None:
    cut, decision = shorten(with_recipe(build("idc"), paper("idc")), replace(TIMES, selection=5.0), 60)
    assert (cut.init, cut.pool) == ("first", paper("idc").pool)
    assert "representatives" not in decision


def test_an_init_or_pretraining_that_leaves_no_time_for_a_step_is_refused(build: Build) -> None:
    selecting = with_recipe(build("dream"), replace(paper("dream"), iterations=5))
    with pytest.raises(BadOption, match="One step of every class takes about"):
        shorten(selecting, replace(TIMES, selection=5.0), 60)  # of at least eight images of each class
    pretraining = with_recipe(build("dm", pretrain_epochs=100), replace(paper("dm"), pretrain_epochs=100))
    with pytest.raises(BadOption, match="One step of every class takes about"):
        shorten(pretraining, TIMES, 10)


def test_an_estimate_spans_the_fastest_and_the_slowest_measurement(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    condenser = with_recipe(build("dm"), replace(paper("dm"), iterations=10, steps=1))
    samples = {"class_step": [1.0, 4.0, 2.0], "network": [0.0], "net_update": [0.0], "selection": [0.0]}
    monkeypatch.setattr(time_budget, "time_items", lambda _: samples)
    found = condenser.estimate()
    assert (found.seconds_range, found.seconds, found.step_seconds) == ((30.0, 120.0), 60.0, 2.0)  # of three classes


def test_a_shortened_run_starts_from_representatives(build: Build) -> None:
    cut, decision = shorten(with_recipe(build("idc"), paper("idc")), TIMES, 600)
    assert (cut.init, cut.pool) == ("representatives", POOL)
    assert "k-means representatives" in decision
    noise, _ = shorten(with_recipe(build("dc"), paper("dc")), TIMES, 600)
    assert noise.init == "noise"
    kept, _ = shorten(with_recipe(build("idc", pool=0, iterations=2000), paper("idc")), TIMES, 600)
    assert kept.pool == 0


def test_several_processes_have_time_for_more(build: Build) -> None:
    alone, _ = shorten(with_recipe(build("dm"), paper("dm")), TIMES, 600)
    three, _ = shorten(with_recipe(build("dm", processes=3), paper("dm")), TIMES, 600)
    assert three.iterations > 2 * alone.iterations


def test_overrides_are_kept(build: Build) -> None:
    chosen = {"image_lr": 0.5, "steps": 7, "net_images": 640}
    condenser = with_recipe(build("idc", **chosen), replace(paper("idc"), **chosen))
    cut, _ = shorten(condenser, TIMES, 600)
    assert {name: getattr(cut, name) for name in chosen} == chosen
    assert cut.iterations < condenser.recipe.iterations
