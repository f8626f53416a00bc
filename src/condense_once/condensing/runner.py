"""The runner: from a config to a condensed set, with checkpoints, signals, callbacks and processes on the way."""

from __future__ import annotations

import math
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.stored_dtype import StoredDtype, check_dtype, with_dtype
from condense_once.condensing.callbacks import Callback, HeldOutAccuracy, RunProgress
from condense_once.condensing.checkpoint import Checkpoint, check_identity, find_checkpoint
from condense_once.condensing.condenser import CondenseEstimate, Task
from condense_once.condensing.config import CondenseConfig, preset_source
from condense_once.condensing.distributed import World, is_primary, process_group
from condense_once.condensing.registry import CONDENSERS
from condense_once.condensing.stop_signals import Interrupted, StopRequest, deferred_signals
from condense_once.data.open import as_source
from condense_once.data.source import Source
from condense_once.data.split import hold_out
from condense_once.errors import BadFile, BadOption, CondenseOnceError
from condense_once.files import exclusive
from condense_once.nets import NetChoice, net_name
from condense_once.text import short_line
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import versions
from condense_once.train.memory import memory_for

SAVE_EVERY = 3.0  # minutes between two checkpoints
CURVE_POINTS = 200  # of the loss, at most, in the header that every device reads
CURVE_DIGITS = 5
MEMORY_ADVICE = "choose a narrower `net`, smaller images (`size`), or a smaller real_batch in `overrides`"
RECENT = 64  # work items whose times decide whether another one still fits in the time budget


def condense(
    source: Source | str | Path,
    *,
    ipc: int,
    method: str | None = None,
    factor: int | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    net: NetChoice | None = None,
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
    init: CondensedSet | str | Path | None = None,
    nested: bool = False,
    experts: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    save_every: float = SAVE_EVERY,
    eval_every: int | None = None,
    compute: ComputeConfig | None = None,
    callbacks: Sequence[Callback] = (),
    notify: Callable[[str], None] | None = None,
    dtype: StoredDtype | None = None,
    began: float | None = None,
) -> CondensedSet:
    """Condense the train split of `source` to `ipc` images per class.

    The settings are those of the `method`'s paper, or of a `preset`; `overrides` changes any field of the recipe. `minutes`
    shortens the run and ends it when the time is up; with it, the `method` is `tgdd` unless named. They count from `began`, a
    time of `time.perf_counter`, by default from now. With `checkpoint`, the run is saved there every `save_every` minutes and
    when a signal ends it; `resume` continues it, to the same bits as an uninterrupted run. `init` is a set to start from
    instead of real images. A `nested` set comes out ranked: its first images are condensed to be a good set of their own, for
    every number of them. `experts` is the folder of trained networks, for methods that use them. With `eval_every`, the
    images are evaluated on held-out training images after every so many networks. Under `torchrun` the classes are
    distributed over the processes; every process returns the complete set. `notify` receives decisions worth knowing, as
    sentences. `dtype` float16 halves a set of normalised values.
    """
    began = time.perf_counter() if began is None else began
    if not save_every >= 0:
        raise BadOption(f"`save_every` must be at least zero, not {save_every:g}.")
    images, compute, notify = (
        preset_source(as_source(source), preset),
        compute or ComputeConfig(),
        notify or (lambda _: None),
    )
    checkpoint = None if checkpoint is None else Path(checkpoint)
    if eval_every is not None:
        images, held_out = hold_out(images)
        callbacks = [
            *callbacks,
            HeldOutAccuracy(held_out, eval_every, callbacks, notify, net=net, seed=seed, compute=compute),
        ]
    saved = find_checkpoint(checkpoint, resume)
    if saved is not None:
        net = net or _saved_name(saved, "net", checkpoint)
        method = method or (None if preset else _saved_name(saved, "method", checkpoint))
    config = CondenseConfig.for_source(
        images,
        ipc=ipc,
        method=method,
        factor=factor,
        preset=preset,
        minutes=minutes,
        net=net,
        seed=seed,
        overrides=overrides or {},
        init=None if init is None else as_set(init),
        nested=nested,
        device=compute.device,
    )
    with _locked(checkpoint), process_group(compute.device) as world:
        task = Task(images, config, compute, world, None if experts is None else Path(experts))
        runner = Runner(task, checkpoint, callbacks, notify, began)
        with memory_for(f"condense by {config.method} with {net_name(config.net)}", MEMORY_ADVICE):
            runner.prepare(saved)
            if dtype is not None:
                check_dtype(runner.result().space.kind, dtype, f"A set by {config.method}")
            with deferred_signals() as stop:
                runner.run(stop, 60 * save_every)
        return runner.result() if dtype is None else with_dtype(runner.result(), dtype)


def _saved_name(saved: Checkpoint, what: str, path: Path | None) -> str | None:
    """The network or method of a checkpoint; the default depends on `minutes`, which may have changed since."""
    name = saved.identity.get(what)
    if not isinstance(name, str | None):
        raise BadFile(f"{path} is damaged: its {what} is {short_line(repr(name), 40)}, not a name.")
    return name


def _locked(checkpoint: Path | None) -> AbstractContextManager[None]:
    """Keep other runs away from a checkpoint; of the processes of this run, rank 0 holds the lock."""
    return nullcontext() if checkpoint is None or not is_primary() else exclusive(checkpoint)


def estimate_condensing(
    source: Source, config: CondenseConfig, compute: ComputeConfig | None = None, *, experts: Path | None = None
) -> CondenseEstimate:
    """The cost of a run in one process, from a few timed steps."""
    task = Task(source, config, compute or ComputeConfig(), World(), experts)
    condenser = CONDENSERS.get(config.method).build(task, None)
    if config.minutes is not None:
        condenser.fit_to_time(60 * config.minutes)
    return condenser.estimate()


class Runner:
    """One run of a condenser."""

    def __init__(
        self,
        task: Task,
        checkpoint: Path | None,
        callbacks: Sequence[Callback],
        notify: Callable[[str], None],
        began: float,  # by `time.perf_counter`: what came before the run counts towards its time budget
    ) -> None:
        self._began = began
        self._task, self._world, self._checkpoint = task, task.world, checkpoint
        self._callbacks: Sequence[Callback] = callbacks if self._world.is_primary else ()
        self._notify: Callable[[str], None] = notify if self._world.is_primary else lambda _: None
        self._identity = {**task.config.identity(task.source), "precision": task.compute.computed_in}
        self._curve: list[tuple[int, float]] = []  # (steps, loss)
        self._losses: list[float] = []  # of the step under way, one per class of this process
        self._loss: float | None = None  # of the last complete step
        self._seconds_before = 0.0
        self._write_error: str | None = None  # of the last checkpoint, if it could not be written
        self._working = 0.0  # seconds of the items since the time budget was last checked
        self._recent: deque[float] = deque(maxlen=RECENT)

    def prepare(self, saved: Checkpoint | None) -> None:
        """Build the condenser and bring it to where the run starts or continues."""
        config = self._task.config
        info = CONDENSERS.get(config.method)
        if saved is None:
            self._condenser = condenser = info.build(self._task, None)
            if config.minutes is not None:
                decision = condenser.fit_to_time(self._seconds_left)
                self._notify(f"{decision} The network is {net_name(config.net)}; `net` chooses another.")
            condenser.initialise()
        else:
            check_identity(saved, self._identity, self._task.source, self._checkpoint, info.resume_with)
            try:
                self._condenser = condenser = info.build(self._task, saved.recipe)
            except BadFile as error:
                raise BadFile(f"{self._checkpoint} is damaged: {error}") from None
            self._restore(saved)
        self._first_item, self._iteration, self._saved_at = condenser.done, condenser.iteration, time.perf_counter()

    def run(self, stop: StopRequest, save_every: float) -> None:
        """Do all work items, unless the time is up or a signal ends the run."""
        self._started, self._stop, condenser = time.perf_counter(), stop, self._condenser
        self._first_iteration, self._steps_began = condenser.iteration, self._started
        while condenser.done < condenser.total and not self._is_over():
            item_began = time.perf_counter()
            loss = condenser.advance()
            self._working += time.perf_counter() - item_began
            if loss is not None:
                self._losses.append(loss)
            elif not condenser.steps:  # experts come before the first step, and are no part of an iteration
                self._steps_began = time.perf_counter()
            self._call("on_item_end")
            number, save = stop.signal, time.perf_counter() - self._saved_at > save_every
            if condenser.is_sync_point:
                number, save = self._synchronise(number, save)
            elif self._world.size > 1:
                continue  # the other processes are not waiting here
            if condenser.done < condenser.total and (number or save):
                saved = self._save()
                if number:
                    raise Interrupted(self._where_saved() if saved else self._why_not_saved(), number)
                if self._write_error is not None:
                    self._notify(f"{self._write_error}; the run continues and tries again later.")
        condenser.synchronise()
        self._call("on_run_end")

    def _is_over(self) -> bool:
        """Whether the time budget ends before half of another item is done, in the eyes of rank 0.

        Items count by the longest of the recent ones; with several processes, by all of them between two sync points.
        """
        if self._task.config.minutes is None or not (self._world.size == 1 or self._condenser.is_sync_point):
            return False
        self._recent.append(self._working)
        self._working = 0.0
        over = self._world.is_primary and self._seconds_left <= max(self._recent) / 2
        return bool(self._world.all_sum(over)[0])

    def _replan(self) -> None:
        """Give the run as many iterations as there is time for, by those of this process; the last one may be cut short."""
        iteration = self._condenser.iteration
        each = (time.perf_counter() - self._steps_began) / (iteration - self._first_iteration)
        more = max(math.ceil(self._seconds_left / each), 0) if self._world.is_primary else 0
        self._condenser.replan(iteration + round(self._world.all_sum(more)[0]))

    def result(self) -> CondensedSet:
        """The images as they are, with how they were made; complete after `run`."""
        source, config, made = self._task.source, self._task.config, self._condenser.result()
        provenance = {
            "method": config.method,
            "source": f"{source.name}, train split",
            "recipe": dict(self._condenser.recipe_json),
            "config": {**self._identity, "minutes": config.minutes},
            "loss": thin_curve(self._curve, CURVE_POINTS),
            "seconds": round(self._seconds, 1),
            "processes": self._world.size,
            "versions": versions(),
        }
        name = f"{source.name}-{config.method}-ipc{config.ipc}"
        return replace(made, name=name, provenance={**provenance, **made.provenance})

    def _restore(self, saved: Checkpoint) -> None:
        condenser = self._condenser
        try:
            if not 0 <= saved.done <= condenser.total:
                raise ValueError(f"{saved.done} of {condenser.total} work items are done")
            condenser.restore(saved.arrays, saved.done)
            if not condenser.is_finite:
                raise ValueError("it has NaN or infinite values")
        except CondenseOnceError:
            raise
        except (KeyError, RuntimeError, ValueError) as error:
            raise BadFile(
                f"{self._checkpoint} does not fit this run ({error}); remove it to start a new run."
            ) from None
        self._curve = [point for point in saved.curve if point[0] <= condenser.steps]
        self._seconds_before = saved.seconds
        if self._world.is_primary and condenser.done == saved.done:  # else the condenser went back to an earlier item
            self._losses = list(saved.losses)

    def _synchronise(self, number: int, save: bool) -> tuple[int, bool]:
        """Exchange losses, signals and the wish to save with the other processes; rank 0 decides when to save."""
        wants_save = save and self._world.is_primary
        total, count, signals, saves = self._world.all_sum(sum(self._losses), len(self._losses), number, wants_save)
        if count:
            self._loss = float(np.float32(total / count))  # as a checkpoint stores it
            self._curve.append((self._condenser.steps, self._loss))
            self._losses = []
            self._call("on_step_end")
        if self._condenser.iteration > self._iteration:
            self._iteration = self._condenser.iteration
            self._condenser.synchronise()
            if self._task.config.minutes is not None:
                self._replan()
            self._call("on_iteration_end")
        return number or (signal.SIGTERM if signals else 0), bool(saves)

    def _save(self) -> bool:
        """Write a checkpoint, unless there is none to write, the state holds NaN or the disk is full.

        A run whose checkpoint cannot be written goes on and tries again later.
        """
        self._saved_at, condenser = time.perf_counter(), self._condenser
        condenser.synchronise()
        if self._checkpoint is None or not condenser.is_finite:
            return False
        if self._world.is_primary:
            try:
                self._write(self._checkpoint)
            except (OSError, CondenseOnceError) as error:
                self._write_error = str(error).rstrip(".")
                return False
            self._write_error = None
            self._call("on_checkpoint")
        return True

    def _write(self, path: Path) -> None:
        condenser = self._condenser
        Checkpoint(
            identity=self._identity,
            recipe=condenser.recipe_json,
            done=condenser.done,
            seconds=self._seconds,
            curve=self._curve,
            losses=self._losses,
            arrays=condenser.state(),
        ).save(path)

    def _where_saved(self) -> str:
        return f"Stopped at {self._fraction_done} and saved to {self._checkpoint}; continue with the same command and `resume`."

    def _why_not_saved(self) -> str:
        if self._checkpoint is None:
            return f"Stopped at {self._fraction_done}; without a `checkpoint` nothing is saved."
        earlier = self._checkpoint.exists()
        if self._write_error is not None:
            how = (
                "continue from the one saved earlier, with the same command and `resume`" if earlier else "start again"
            )
            return f"Stopped at {self._fraction_done}, but {self._write_error}; free some space, then {how}."
        how = f"resume from {self._checkpoint}, saved earlier" if earlier else "start again"
        return (
            f"Stopped at {self._fraction_done} without saving, because the state holds NaN; {how}, with a smaller net_lr"
            " in `overrides`."
        )

    @property
    def _fraction_done(self) -> str:
        return f"{self._condenser.done / self._condenser.total:.1%}"

    @property
    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._began

    @property
    def _seconds_left(self) -> float:
        minutes = self._task.config.minutes
        return math.inf if minutes is None else 60 * minutes - self._seconds

    def _call(self, event: str) -> None:
        if not self._callbacks:
            return
        condenser = self._condenser
        items, elapsed = condenser.done - self._first_item, time.perf_counter() - self._started
        progress = RunProgress(
            done=condenser.done,
            total=condenser.total,
            iteration=condenser.iteration,
            steps=condenser.steps,
            loss=self._loss,
            images_per_second=items * condenser.images_per_item / elapsed if elapsed else 0.0,
            seconds=self._seconds,
            seconds_left=elapsed / items * (condenser.total - condenser.done) if items else None,
            result=self.result,
            stopping=lambda: bool(self._stop.signal) or self._seconds_left <= 0,
        )
        for callback in self._callbacks:
            try:
                getattr(callback, event)(progress)
            except (CondenseOnceError, OSError) as error:  # a full disk, say; the run is worth more
                self._notify(f"The run continues, but a callback failed: {error}")


def thin_curve(curve: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Every n-th point of a curve and its last, about `most` in all, rounded.

    >>> thin_curve([(step, step / 3) for step in range(1, 11)], 3)
    [(4, 1.3333), (8, 2.6667), (10, 3.3333)]
    """
    every = -(-len(curve) // most) if curve else 1
    kept = list(curve[every - 1 :: every])
    if curve and kept[-1] != curve[-1]:
        kept.append(curve[-1])
    return [(step, float(f"{loss:.{CURVE_DIGITS}g}")) for step, loss in kept]
