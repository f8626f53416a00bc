"""Fit a recipe to a time budget: time each kind of work on this machine, then shorten the loops."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from condense_once.condensing.condenser import CondenseEstimate
from condense_once.condensing.item_timing import MEASURE_SHARE, REPEATS, sample_times
from condense_once.condensing.matching.recipe import Distance, MatchingRecipe
from condense_once.condensing.matching.schedule import Schedule, make_schedule
from condense_once.condensing.peak_memory import peak_memory
from condense_once.condensing.too_short import refuse_too_short
from condense_once.data.split import Rows
from condense_once.text import human_time, plural
from condense_once.train.seeds import generator

if TYPE_CHECKING:
    from condense_once.condensing.matching.loop import MatchingCondenser

NET_UPDATE_SHARE = 1 / 3  # of the time of the class steps goes to network updates, at most, in a shortened run
INIT_SHARE = 0.1  # of the time budget goes to k-means before the first step, at most
POOL = 1024  # real images of a class that k-means runs on in a shortened run …
MEASURED_POOL = 256  # … and when it is timed
# Factor by which the image learning rate may grow when fewer steps are left to use it. For mse, 20 was better than 4, 60 and
# 200 (results/README.md); the others are guesses.
LR_BOOST: dict[Distance, float] = {"mse": 20.0, "l1": 4.0, "cosine": 4.0, "features": 4.0}
DOUBTFUL = 0.1  # of the time budget for one step of every class: then a class step on a few real images is timed first
PROBED = 8  # images of a first forward pass, which tells within seconds whether class steps are out of the question
COMPILED_STEP = 0.5  # of an eager step's time, with torch.compile
COMPILING = 120.0  # seconds


Samples = Mapping[str, Sequence[float]]  # seconds of each kind of work, by the names of `ItemTimes`
Pick = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class ItemTimes:
    """Seconds of each kind of work."""

    class_step: float
    net_update: float  # one batch
    selection: float  # of k-means representatives, per image that k-means runs on
    network: float  # re-initialising it

    def total(self, recipe: MatchingRecipe, schedule: Schedule, pool: int, processes: int = 1) -> float:
        """The whole run, with the classes distributed over `processes`."""
        turns = -(-schedule.classes // processes)
        selections = turns * -(-recipe.steps // recipe.reselect_every) if recipe.reselect_every else 0
        updates = schedule.pretrain + (recipe.steps - 1) * schedule.net_update
        selecting = selections * pool * self.selection
        each = self.network + recipe.steps * turns * self.class_step + selecting + updates * self.net_update
        return self.init(recipe, schedule, pool) + recipe.iterations * each

    def init(self, recipe: MatchingRecipe, schedule: Schedule, pool: int) -> float:
        """Before the first network: every process selects for all classes."""
        return schedule.classes * pool * self.selection if recipe.init == "representatives" else 0.0


def fit_recipe(condenser: MatchingCondenser, seconds: float) -> tuple[MatchingRecipe, str]:
    """The recipe shortened to so many seconds, and a sentence that says how; rank 0 decides for all processes."""
    recipe, decision, world = condenser.recipe, "", condenser.task.world
    if world.is_primary:
        start = time.perf_counter()
        times = measure(condenser, seconds)
        left = max(seconds - (time.perf_counter() - start), 0.0)
        recipe, decision = shorten(condenser, times, left)
    return MatchingRecipe(**json.loads(world.broadcast_text(json.dumps(asdict(recipe))))), decision


def estimate(condenser: MatchingCondenser) -> CondenseEstimate:
    """Time steps of the real size, without torch.compile, which would take minutes; the rest is arithmetic."""
    network, class_step, recipe = condenser.network, condenser.class_step, condenser.recipe
    compiled, class_step.compiled, network.compiled = class_step.compiled, False, False
    samples = time_items(condenser)

    def seconds(pick: Pick) -> float:
        times = summarise(samples, pick)
        if compiled:
            times = replace(times, class_step=times.class_step * COMPILED_STEP)
        return (COMPILING if compiled else 0.0) + _total(condenser, recipe, times)

    return CondenseEstimate(
        seconds=seconds(statistics.median),
        seconds_range=(seconds(min), seconds(max)),
        bytes=peak_memory(),
        iterations=recipe.iterations,
        steps=recipe.steps,
        step_seconds=statistics.median(samples["class_step"]) * (COMPILED_STEP if compiled else 1),
    )


def measure(condenser: MatchingCondenser, seconds: float = math.inf) -> ItemTimes:
    """The typical time of each kind of work item; refuses a budget of `seconds` as soon as class steps prove too slow."""
    return summarise(time_items(condenser, seconds), statistics.median)


def summarise(samples: Samples, pick: Pick) -> ItemTimes:
    return ItemTimes(**{name: float(pick(each)) for name, each in samples.items()})


def time_items(condenser: MatchingCondenser, seconds: float = math.inf) -> Samples:
    """Time each kind of work item on the real images, once it is warm; nothing of it is kept."""
    recipe, began = condenser.recipe, time.perf_counter()
    short = replace(
        recipe,
        iterations=1,
        steps=2,
        pretrain_epochs=min(recipe.pretrain_epochs, 1),
        net_epochs=min(recipe.net_epochs, 1),
        pool=max(MEASURED_POOL, _selected(condenser)),
    )
    twin, sampling = condenser.twin(short), generator(0, "measure")
    twin.images.copy_(torch.rand(twin.images.shape, generator=sampling))
    schedule = twin.schedule
    first_step, updates = schedule.pretrain, schedule.net_update
    batch = first_step + schedule.classes if updates else first_step - 1
    some_class = min(1, schedule.classes - 1)  # not the first, which also calibrates batch norm for all
    second_step = first_step + schedule.classes + updates + some_class
    compiles = condenser.class_step.compiled or condenser.network.compiled

    def timed(work: Callable[[], None], repeats: int = REPEATS) -> list[float]:
        return sample_times(work, repeats=repeats, deadline=began + MEASURE_SHARE * seconds, compiles=compiles)

    def check(class_step: float, *, at_least: bool = False) -> None:
        if recipe.iterations:
            left = seconds - (time.perf_counter() - began)
            refuse_too_short(condenser.task, _turns(condenser) * class_step, left, at_least=at_least)

    least, images = _least_class_step(twin), min(recipe.real_batch, len(twin.real.rows[0]))
    check(least, at_least=True)
    if _turns(condenser) * least > DOUBTFUL * seconds and images > PROBED and not (compiles or recipe.reselect_every):
        probe = condenser.twin(replace(short, real_batch=PROBED))
        check(least * (1 - PROBED / images) + _once(lambda: _advance(probe, second_step)), at_least=True)
    class_step = timed(lambda: _advance(twin, second_step))
    check(min(class_step))
    selection = timed(lambda: _select(twin), repeats=1) if _may_select(recipe) else [0.0]
    return {
        "class_step": class_step,
        "network": timed(lambda: twin.network.reinitialise(generator(0, "measure"))),
        "net_update": timed(lambda: _advance(twin, batch)) if updates or first_step else [0.0],
        "selection": [each / _pool(condenser, short) for each in selection],
    }


def shorten(condenser: MatchingCondenser, times: ItemTimes, seconds: float) -> tuple[MatchingRecipe, str]:
    """The recipe cut to `seconds`; fields that the user overrode stay, except the number of networks.

    Pretraining is dropped, network updates get a third of the time of the class steps, and k-means runs on fewer images; where
    the images would start from the first real ones, or from random ones, they start from representatives. Of the steps that
    are affordable, as many are made with each network as there are networks, up to the recipe's number. The image learning
    rate grows with the square root of the missing steps, up to `LR_BOOST`. MDC's periods are as many as in the whole recipe,
    and one for every subset at least, if there are so many networks.
    """
    recipe, fixed = condenser.recipe, condenser.task.config.overrides
    whole = _total(condenser, recipe, times)
    if whole <= seconds or not recipe.iterations:
        return recipe, f"The full recipe of {recipe.method} takes about {human_time(whole)}; nothing is cut."

    def override(base: MatchingRecipe, **fields: Any) -> MatchingRecipe:
        return replace(base, **{name: value for name, value in fields.items() if name not in fixed})

    lean = override(recipe, **_lean_fields(condenser, times, seconds))
    refuse_too_short(condenser.task, _total(condenser, replace(lean, iterations=1, steps=1), times), seconds)
    affordable = recipe.iterations * recipe.steps * seconds / _total(condenser, lean, times)
    one = replace(override(lean, steps=min(recipe.steps, max(1, round(math.sqrt(affordable))))), iterations=1)
    init = times.init(one, _schedule(condenser, one), _pool(condenser, one))
    networks = int((seconds - init) / (_total(condenser, one, times) - init))
    cut = replace(one, iterations=min(max(1, networks), recipe.iterations))
    if recipe.subset_period:
        cut = override(cut, subset_period=_subset_period(condenser, cut.iterations))
    missing = recipe.iterations * recipe.steps / (cut.iterations * cut.steps)
    cut = override(cut, image_lr=recipe.image_lr * min(LR_BOOST[recipe.distance], math.sqrt(missing)))
    init_text = ", initialised with k-means representatives" if cut.init == "representatives" else ""
    return cut, (
        f"{recipe.method} takes about {human_time(whole)} here; for {human_time(seconds)} it is cut to"
        f" {plural(cut.iterations, 'network')} with {plural(cut.steps, 'step')} per class each"
        f" (of {recipe.iterations} with {recipe.steps}), {_updates_text(cut)}{init_text}, and"
        f" image learning rate {cut.image_lr:.3g} (of {recipe.image_lr:g}): about {human_time(_total(condenser, cut, times))}."
    )


def _lean_fields(condenser: MatchingCondenser, times: ItemTimes, seconds: float) -> dict[str, Any]:
    """The fields of a recipe that spends its time on class steps and starts well."""
    recipe, schedule, turns = condenser.recipe, condenser.schedule, _turns(condenser)
    lean: dict[str, Any] = {"pretrain_epochs": 0}
    affordable = int(INIT_SHARE * seconds / max(schedule.classes * times.selection, 1e-9))  # images of a class
    if recipe.init in ("first", "random") and affordable >= condenser.task.config.patches_per_class:
        lean["init"] = "representatives"
    if recipe.reselect_every or "representatives" in (recipe.init, lean.get("init")):
        lean["pool"] = max(min(recipe.pool or POOL, POOL, affordable), _selected(condenser))
    if schedule.net_update:
        batches = max(1, int(NET_UPDATE_SHARE * turns * times.class_step / max(times.net_update, 1e-9)))
        fraction = min(1.0, batches / schedule.net_update)
        if recipe.net_data == "real":
            lean["net_images"] = max(recipe.net_batch, int(recipe.net_images * fraction))
        else:
            lean["net_epochs"] = max(1, int(recipe.net_epochs * fraction))
    return lean


def _subset_period(condenser: MatchingCondenser, iterations: int) -> int:
    """Networks for which a subset is the current one in a run of so many."""
    recipe = condenser.recipe
    periods = max(recipe.iterations // recipe.subset_period, condenser.task.config.ipc - 1, 1)
    return max(1, iterations // periods)


def _turns(condenser: MatchingCondenser) -> int:
    """Class steps of this process in one step of every class."""
    return -(-condenser.schedule.classes // condenser.task.world.size)


def _total(condenser: MatchingCondenser, recipe: MatchingRecipe, times: ItemTimes) -> float:
    processes = condenser.task.world.size
    return times.total(recipe, _schedule(condenser, recipe), _pool(condenser, recipe), processes)


def _schedule(condenser: MatchingCondenser, recipe: MatchingRecipe) -> Schedule:
    classes = condenser.schedule.classes
    patches = classes * condenser.task.config.patches_per_class
    return make_schedule(recipe, images=len(condenser.real), classes=classes, patches=patches)


def _pool(condenser: MatchingCondenser, recipe: MatchingRecipe) -> int:
    """Real images of a class that k-means runs on, on average."""
    images = len(condenser.real)
    return min(recipe.pool or images, -(-images // condenser.schedule.classes))


def _may_select(recipe: MatchingRecipe) -> bool:
    """Whether k-means may run, at least at the start."""
    return bool(recipe.reselect_every) or recipe.init in ("first", "random", "representatives")


def _least_class_step(twin: MatchingCondenser) -> float:
    """A lower bound of the time of a class step, by its real images alone; a backward pass takes as long as two forward."""
    recipe, rows = twin.recipe, twin.real.rows[0]
    probed = rows[:PROBED]
    forward = min(sample_times(lambda: _forward(twin, probed), repeats=1)) / len(probed)
    return (1 if recipe.distance == "features" else 3) * min(recipe.real_batch, len(rows)) * forward


def _once(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _forward(twin: MatchingCondenser, rows: Rows) -> None:
    twin.real.features(rows, twin.network.net)


def _selected(condenser: MatchingCondenser) -> int:
    """Images of a class that k-means selects at most."""
    recipe, patches = condenser.recipe, condenser.task.config.patches_per_class
    return max(recipe.real_batch, patches) if recipe.reselect_every else patches


def _select(twin: MatchingCondenser) -> None:
    twin.real.representatives(0, _selected(twin), twin.network.net, number=0)


def _advance(twin: MatchingCondenser, place: int) -> None:
    twin.done = place
    twin.advance()


def _updates_text(recipe: MatchingRecipe) -> str:
    if recipe.net_data == "real":
        return f"network updates on {plural(recipe.net_images, 'real image')}"
    return (
        f"network updates of {plural(recipe.net_epochs, 'epoch')}"
        if recipe.net_data == "synthetic"
        else "no network updates"
    )
