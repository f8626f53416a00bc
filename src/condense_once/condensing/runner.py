"""Condensing a source, from what is asked for to the finished set; nothing that was done is lost on the way."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from condense_once.condensed.set import CondensedSet
from condense_once.condensing.callbacks import Moment, Observer, Status
from condense_once.condensing.checkpoint import Checkpoint
from condense_once.condensing.config import make_request
from condense_once.condensing.distributed import Shard, joined
from condense_once.condensing.finishing import finished
from condense_once.condensing.job import Job
from condense_once.condensing.matching.class_step import Matcher
from condense_once.condensing.matching.loop import MatchingLoop
from condense_once.condensing.matching.network import Learner
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.matching.time_budget import measure
from condense_once.condensing.resuming import find_checkpoint, recipe_of, restore
from condense_once.condensing.signals import Stopped, StopRequest, listening
from condense_once.data.source import Source
from condense_once.errors import CondenseOnceError
from condense_once.nets import NetChoice, net_name
from condense_once.train.hardware import ComputeConfig

SAVE_EVERY = 180.0  # seconds between two checkpoints


def condense(
    source: Source,
    *,
    ipc: int,
    method: str | None = None,
    factor: int | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    net: NetChoice | None = None,
    seed: int = 0,
    changes: Mapping[str, Any] | None = None,
    start: CondensedSet | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    save_every: float = SAVE_EVERY,
    compute: ComputeConfig | None = None,
    observers: Sequence[Observer] = (),
    say: Callable[[str], None] | None = None,
) -> CondensedSet:
    """A condensed set of `ipc` images per class, made from the train split of `source`.

    The recipe is the paper's of `method`, or a `preset`; `minutes` cuts it to the time there is, and `changes` sets any of
    its fields. With `checkpoint`, the run is saved there every few minutes and when it is told to end; `resume` goes on from
    it and ends with the same bits as a run that was never interrupted. `start` is a set to begin from instead of real
    images. Under `torchrun` the classes are shared by the processes; the set is complete in each of them. `say` is told in
    sentences what was decided.
    """
    request = make_request(
        source,
        ipc=ipc,
        method=method,
        factor=factor,
        preset=preset,
        minutes=minutes,
        net=net,
        seed=seed,
        changes=changes or {},
        start=start,
    )
    compute = compute or ComputeConfig()
    with joined(compute.device) as shard:
        job = Job(source, request, compute, shard.world)
        run = Run(job, save_every, shard, checkpoint, observers, say or (lambda _: None))
        run.prepare(resume)
        with listening() as stop:
            run.go(stop)
        return run.images()


class Run:
    """One run of a job: what it begins from, its ticks, and what is kept and told of it."""

    def __init__(
        self,
        job: Job,
        save_every: float,
        shard: Shard,
        checkpoint: Path | None,
        observers: Sequence[Observer],
        say: Callable[[str], None],
    ) -> None:
        self.began = time.perf_counter()
        self.job, self.recipe, self.save_every, self.shard, self.checkpoint = (
            job,
            job.recipe,
            save_every,
            shard,
            checkpoint,
        )
        self.observers: Sequence[Observer] = observers if shard.is_first else ()  # one speaks for all
        self.say: Callable[[str], None] = say if shard.is_first else lambda _: None
        self.curve: list[tuple[int, float]] = []
        self.seconds_before = 0.0
        self._losses: list[float] = []
        self._loss: float | None = None

    def prepare(self, resume: bool) -> None:
        """Everything up to the first tick."""
        job, problem, path = self.job, self.job.problem, self.checkpoint
        found = find_checkpoint(path, resume, job)
        if found is not None:
            self.recipe = recipe_of(found, path).changed(job.request.rates)
        learner, matcher = job.make_parts(self.recipe)
        if found is None and job.request.minutes is not None:
            self.recipe = self._fitted(learner, matcher, job.request.minutes)
        if found is None:
            images = job.first_images(self.recipe, learner)
        else:
            images = torch.zeros(problem.classes, problem.ipc, *problem.shape, device=learner.device)
        self.loop = MatchingLoop(problem, self.recipe, learner, matcher, images, self.shard)
        if found is not None:
            restore(self.loop, found, path)
            self.curve = [point for point in found.curve if point[0] <= self._steps_done]
            self.seconds_before = found.seconds
            same = self.shard.is_first and self.loop.done == found.done  # once in the sum of all; none if it went back
            self._losses = list(found.losses) if same else []
        self._done_before, self._saved_at = self.loop.done, time.perf_counter()

    def go(self, stop: StopRequest) -> None:
        """Tick until it is done, or until it is told to stop."""
        self._ticking, self._stop = time.perf_counter(), stop
        while not self.loop.finished:
            loss = self.loop.advance()
            if loss is not None:
                self._losses.append(loss)
            self._tell("tick")
            number, save = stop.signal, time.perf_counter() - self._saved_at > self.save_every
            if self.loop.meets:
                number, save = self._meet(number, save)
            elif self.shard.world > 1:
                continue  # the others are not met here
            saved = (number or save) and not self.loop.finished and self._save()
            if number and not self.loop.finished:
                raise Stopped(self._how_to_go_on() if saved else self._why_not_saved(), number)
        self.loop.gather()
        self._tell("finished")

    def _meet(self, number: int, save: bool) -> tuple[int, bool]:
        """Hear of the other processes what was lost in all, and whether anybody wants to stop, by which signal, or to save."""
        clock = save and self.shard.is_first
        total, count, anybody, wanted = self.shard.total(sum(self._losses), len(self._losses), number, clock)
        if count:
            self._loss = float(np.float32(total / count))  # as a checkpoint keeps it
            self.curve.append((self._steps_done, self._loss))
            self._losses = []
            self._tell("step")
        if self.loop.between_networks:
            self.loop.gather()
            self._tell("network")
        return number or (signal.SIGTERM if anybody else 0), bool(wanted)

    def _fitted(self, learner: Learner, matcher: Matcher, minutes: float) -> MatchingRecipe:
        """The recipe for the minutes there are; the first process decides for all."""
        recipe = self.recipe
        if self.shard.is_first:
            times = measure(self.job.problem, recipe, learner, matcher)
            recipe, sentence = self.job.fitted(times, 60 * minutes - (time.perf_counter() - self.began))
            self.say(f"{sentence} Images are matched by {net_name(self.job.net)}; --net takes another.")
        return MatchingRecipe(**json.loads(self.shard.from_first(json.dumps(asdict(recipe)))))

    def _save(self) -> bool:
        """Keep all of it, if it is worth the checkpoint before it, as what is NaN is not; the first process does so for all."""
        self._saved_at = time.perf_counter()
        self.loop.gather()
        if self.checkpoint is None or not self.loop.is_sound:
            return False
        if self.shard.is_first:
            self._write(self.checkpoint)
            self._tell("saved")
        return True

    def _write(self, path: Path) -> None:
        Checkpoint(
            request=self.job.described,
            recipe=asdict(self.recipe),
            done=self.loop.done,
            seconds=self._seconds,
            curve=self.curve,
            losses=self._losses,
            arrays=self.loop.arrays(),
        ).save(path)

    def _how_to_go_on(self) -> str:
        return f"Stopped at {self._share} and saved in {self.checkpoint}; go on with the same command and --resume."

    def _why_not_saved(self) -> str:
        if self.checkpoint is None:
            return f"Stopped at {self._share}; without a checkpoint all of it is lost."
        if self.checkpoint.exists():
            how = f"go on from {self.checkpoint}, saved before, with --resume --set net_rate=…"
        else:
            how = "begin anew with --set net_rate=…"
        return f"Stopped at {self._share}, but not saved, for something had become NaN; {how}, a smaller rate."

    @property
    def _share(self) -> str:
        return f"{self.loop.done / self.loop.table.total:.1%}"

    @property
    def _seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.began

    @property
    def _steps_done(self) -> int:
        table = self.loop.table
        return table.steps_before(table.at(self.loop.done))

    def _tell(self, moment: Moment) -> None:
        if not self.observers:
            return
        loop = self.loop
        ticks, elapsed = loop.done - self._done_before, time.perf_counter() - self._ticking
        steps = ticks * self.recipe.steps * loop.table.classes / loop.table.per_iteration
        status = Status(
            moment=moment,
            done=loop.done,
            total=loop.table.total,
            networks=loop.done // loop.table.per_iteration,
            steps=self._steps_done,
            loss=self._loss,
            images_per_second=steps * self.job.images_a_step / elapsed if elapsed else 0.0,
            seconds=self._seconds,
            seconds_left=elapsed / ticks * (loop.table.total - loop.done) if ticks else None,
            images=self.images,
            stopping=lambda: bool(self._stop.signal),
        )
        for observer in self.observers:
            try:
                observer(status)
            except (CondenseOnceError, OSError) as error:  # a full disk, say; what is watched is worth more
                self.say(f"The run goes on, but watching it failed: {error}")

    def images(self) -> CondensedSet:
        """As they are, as a set; complete after `go`, and whenever they were gathered."""
        told = {"asked for": self.job.described, "seconds": round(self._seconds, 1), "processes": self.shard.world}
        return finished(self.job.problem, self.recipe, self.loop.mosaics(), self.curve, told)
