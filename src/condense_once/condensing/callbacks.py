"""Callbacks: contact sheets, held-out accuracy and TensorBoard curves while a run goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from condense_once.condensed.contact_sheet import contact_sheet
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import MissingExtra
from condense_once.evaluation.evaluate import evaluate
from condense_once.files import atomic_file
from condense_once.nets import NetChoice
from condense_once.text import plural
from condense_once.train.compute_config import ComputeConfig


@dataclass(frozen=True)
class RunProgress:
    """How far a run is."""

    done: int  # work items
    total: int
    iteration: int  # outer iterations completed: networks, for matching methods
    steps: int  # image updates of every class completed
    loss: float | None  # of the last complete step, mean over the classes
    images_per_second: float  # real and synthetic
    seconds: float  # since the run began, interruptions excluded
    seconds_left: float | None
    # The images as they are: of all classes after an iteration, at a checkpoint and at the end.
    result: Callable[[], CondensedSet] = field(repr=False)
    stopping: Callable[[], bool] = field(repr=False)  # whether a signal or the time budget ends the run


class Callback:
    """Override what you need. A callback that raises `CondenseOnceError` or `OSError` is reported; the run goes on."""

    def on_item_end(self, progress: RunProgress) -> None:
        """After every work item."""

    def on_step_end(self, progress: RunProgress) -> None:
        """After a step of every class; the loss is new."""

    def on_iteration_end(self, progress: RunProgress) -> None:
        """After the last step with one network."""

    def on_checkpoint(self, progress: RunProgress) -> None:
        """After a checkpoint was written."""

    def on_evaluation(self, iteration: int, accuracy: float) -> None:
        """After an evaluation on held-out training images."""

    def on_run_end(self, progress: RunProgress) -> None:
        """After the last work item."""


class ContactSheet(Callback):
    """Draws the images to a PNG at every checkpoint and at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_checkpoint(self, progress: RunProgress) -> None:
        sheet, _ = contact_sheet(progress.result())
        with atomic_file(self._path, force=True) as out:
            sheet.save(out, "PNG")

    on_run_end = on_checkpoint


class _EvaluationAborted(Exception):
    """A signal or the time budget ended the run during an evaluation."""


class HeldOutAccuracy(Callback):
    """Evaluates the images under `quick` on held-out training images, every `every` iterations, and tells the others."""

    def __init__(
        self,
        held_out: Source,
        every: int,
        others: Sequence[Callback],
        notify: Callable[[str], None],
        *,
        net: NetChoice | None = None,
        seed: int = 0,
        compute: ComputeConfig | None = None,
    ) -> None:
        self._held_out, self._every, self._others, self._notify = held_out, every, others, notify
        self._net, self._seed, self._compute = net, seed, compute

    def on_iteration_end(self, progress: RunProgress) -> None:
        if progress.iteration % self._every:
            return

        def check(*_: int) -> None:
            if progress.stopping():
                raise _EvaluationAborted

        with suppress(_EvaluationAborted):
            check()
            result = evaluate(
                progress.result(),
                self._held_out,
                protocol="quick",
                net=self._net,
                repeats=1,
                seed=self._seed,
                compute=self._compute,
                progress=check,
            )
            accuracy, done = result.mean, progress.iteration
            self._notify(
                f"After {plural(done, 'network')}: {accuracy:.2%} on held-out training images (quick protocol, n = 1)."
            )
            for callback in self._others:
                callback.on_evaluation(done, accuracy)


class TensorBoard(Callback):
    """Loss, speed and held-out accuracy as TensorBoard scalars."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtra("Writing for TensorBoard", "tensorboard") from None
        self._writer: Any = SummaryWriter(str(folder))

    def on_step_end(self, progress: RunProgress) -> None:
        self._writer.add_scalar("loss", progress.loss, progress.steps)
        self._writer.add_scalar("images per second", progress.images_per_second, progress.steps)
        self._writer.flush()

    def on_evaluation(self, iteration: int, accuracy: float) -> None:
        self._writer.add_scalar("held-out accuracy", accuracy, iteration)
        self._writer.flush()
