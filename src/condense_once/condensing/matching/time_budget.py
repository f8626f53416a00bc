"""Fit a recipe to a time budget: time each kind of work on this machine, then shorten the loops."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from condense_once.condensing.condenser import CondenseEstimate
from condense_once.condensing.matching.recipe import Distance, MatchingRecipe
from condense_once.condensing.matching.schedule import Schedule, make_schedule
from condense_once.errors import BadOption
from condense_once.text import human_time
from condense_once.train.seeds import generator

if TYPE_CHECKING:
    from condense_once.condensing.matching.loop import MatchingCondenser

NET_UPDATE_SHARE = 1 / 3  # of the time of the class steps goes to network updates, at most, in a shortened run
POOL = 1024  # real images of a class that k-means runs on in a shortened run
# Factor by which the image learning rate may grow when fewer steps are left to use it. For mse, 20 was better than 4, 60 and
# 200 (results/README.md); the others are guesses.
LR_BOOST: dict[Distance, float] = {"mse": 20.0, "l1": 4.0, "cosine": 4.0, "features": 4.0}
REPEATS = 3  # of each measurement; the fastest counts
LONG_ENOUGH = 1.0  # second: what takes longer is measured once
COMPILED_STEP = 0.5  # of an eager step's time, with torch.compile
COMPILING = 120.0  # seconds


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
        times = measure(condenser)
        left = max(seconds - (time.perf_counter() - start), 0.0)
        recipe, decision = shorten(condenser, times, left)
    return MatchingRecipe(**json.loads(world.broadcast_text(json.dumps(asdict(recipe))))), decision


def estimate(condenser: MatchingCondenser) -> CondenseEstimate:
    """Time steps of the real size, without torch.compile, which would take minutes; the rest is arithmetic."""
    network, class_step, recipe = condenser.network, condenser.class_step, condenser.recipe
    compiled, class_step.compiled, network.compiled = class_step.compiled, False, False
    times = measure(condenser, repeats=1)
    if compiled:
        times = replace(times, class_step=times.class_step * COMPILED_STEP)
    return CondenseEstimate(
        seconds=(COMPILING if compiled else 0.0) + _total(condenser, recipe, times),
        bytes=_peak_memory(),
        iterations=recipe.iterations,
        steps=recipe.steps,
        step_seconds=times.class_step,
    )


def measure(condenser: MatchingCondenser, repeats: int = REPEATS) -> ItemTimes:
    """Time each kind of work item on the real images, once it is warm; nothing of it is kept."""
    recipe = condenser.recipe
    short = replace(
        recipe,
        iterations=1,
        steps=2,
        pretrain_epochs=min(recipe.pretrain_epochs, 1),
        net_epochs=min(recipe.net_epochs, 1),
        pool=POOL,
    )
    twin, sampling = condenser.twin(short), generator(0, "measure")
    twin.images.copy_(torch.rand(twin.images.shape, generator=sampling))
    schedule = twin.schedule
    first_step, updates = schedule.pretrain, schedule.net_update
    batch = first_step + schedule.classes if updates else first_step - 1
    some_class = min(1, schedule.classes - 1)  # not the first, which also calibrates batch norm for all
    second_step = first_step + schedule.classes + updates + some_class
    pool = _pool(condenser, short)
    return ItemTimes(
        network=_fastest(lambda: twin.network.reinitialise(generator(0, "measure")), repeats),
        class_step=_fastest(lambda: _advance(twin, second_step), repeats),
        net_update=_fastest(lambda: _advance(twin, batch), repeats) if updates or first_step else 0.0,
        selection=_fastest(lambda: _select(twin), 1) / pool if _may_select(recipe) else 0.0,
    )


def shorten(condenser: MatchingCondenser, times: ItemTimes, seconds: float) -> tuple[MatchingRecipe, str]:
    """The recipe cut to `seconds`; fields that the user overrode stay, except the number of networks.

    Pretraining is dropped, network updates get a third of the time of the class steps, and k-means runs on fewer images; where
    the images would start from the first real ones, they start from representatives. Of the steps that are affordable, as many
    are made with each network as there are networks, up to the recipe's number. The image learning rate grows with the square
    root of the missing steps, up to `LR_BOOST`.
    """
    recipe, fixed = condenser.recipe, condenser.task.config.overrides
    whole = _total(condenser, recipe, times)
    _refuse_too_short(condenser, times, seconds)
    if whole <= seconds or not recipe.iterations:
        return recipe, f"The full recipe of {recipe.method} takes about {_minutes(whole)}; nothing is cut."

    def override(base: MatchingRecipe, **fields: Any) -> MatchingRecipe:
        return replace(base, **{name: value for name, value in fields.items() if name not in fixed})

    lean = override(recipe, **_lean_fields(condenser, times))
    affordable = recipe.iterations * recipe.steps * seconds / _total(condenser, lean, times)
    one = replace(override(lean, steps=min(recipe.steps, max(1, round(math.sqrt(affordable))))), iterations=1)
    init = times.init(one, _schedule(condenser, one), _pool(condenser, one))
    networks = int((seconds - init) / (_total(condenser, one, times) - init))
    cut = replace(one, iterations=min(max(1, networks), recipe.iterations))
    missing = recipe.iterations * recipe.steps / (cut.iterations * cut.steps)
    cut = override(cut, image_lr=recipe.image_lr * min(LR_BOOST[recipe.distance], math.sqrt(missing)))
    init_text = ", initialised with k-means representatives" if cut.init == "representatives" else ""
    return cut, (
        f"{recipe.method} takes about {_minutes(whole)} here; for {_minutes(seconds)} it is cut to {cut.iterations} networks with"
        f" {cut.steps} steps per class each (of {recipe.iterations} with {recipe.steps}), {_updates_text(cut)}{init_text}, and"
        f" image learning rate {cut.image_lr:.3g} (of {recipe.image_lr:g}): about {_minutes(_total(condenser, cut, times))}."
    )


def _refuse_too_short(condenser: MatchingCondenser, times: ItemTimes, seconds: float) -> None:
    """Refuse a budget in which not even one step of every class can be made."""
    turns = -(-condenser.schedule.classes // condenser.task.world.size)
    step = times.network + turns * times.class_step
    if condenser.recipe.iterations and step > seconds:
        raise BadOption(
            f"One step of every class takes about {human_time(step)} here, longer than the {human_time(max(seconds, 0))} left of"
            " `minutes`; allow more, make the images smaller (`size`), or choose a narrower `net`."
        )


def _lean_fields(condenser: MatchingCondenser, times: ItemTimes) -> dict[str, Any]:
    """The fields of a recipe that spends its time on class steps and starts well."""
    recipe, schedule = condenser.recipe, condenser.schedule
    turns = -(-schedule.classes // condenser.task.world.size)
    lean: dict[str, Any] = {"pretrain_epochs": 0}
    if recipe.init == "first":
        lean["init"] = "representatives"
    if recipe.reselect_every or "representatives" in (recipe.init, lean.get("init")):
        lean["pool"] = min(recipe.pool or POOL, POOL)
    if schedule.net_update:
        batches = max(1, int(NET_UPDATE_SHARE * turns * times.class_step / max(times.net_update, 1e-9)))
        fraction = min(1.0, batches / schedule.net_update)
        if recipe.net_data == "real":
            lean["net_images"] = max(recipe.net_batch, int(recipe.net_images * fraction))
        else:
            lean["net_epochs"] = max(1, int(recipe.net_epochs * fraction))
    return lean


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
    return bool(recipe.reselect_every) or recipe.init in ("first", "representatives")


def _select(twin: MatchingCondenser) -> None:
    recipe = twin.recipe
    count = recipe.real_batch if recipe.reselect_every else twin.task.config.patches_per_class
    twin.real.representatives(0, count, twin.network.net, number=0)


def _advance(twin: MatchingCondenser, place: int) -> None:
    twin.done = place
    twin.advance()


def _fastest(work: Callable[[], None], repeats: int) -> float:
    work()  # warm-up: whatever is compiled is compiled now
    fastest = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - start)
        if fastest > LONG_ENOUGH:
            break
    return fastest


def _updates_text(recipe: MatchingRecipe) -> str:
    if recipe.net_data == "real":
        return f"network updates on {recipe.net_images} real images"
    return f"network updates of {recipe.net_epochs} epochs" if recipe.net_data == "synthetic" else "no network updates"


def _minutes(seconds: float) -> str:
    hours = seconds / 3600
    return f"{seconds / 60:.1f} minutes" if hours < 3 else f"{hours:,.0f} hours"


def _peak_memory() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
