"""What can be seen of a run while it goes on: how far it is, what the images look like, how well they teach."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import MissingExtra
from condense_once.nets import NetChoice
from condense_once.train.hardware import ComputeConfig

Moment = Literal["tick", "step", "network", "saved", "finished"]


@dataclass(frozen=True)
class Status:
    """A run at one moment: after a tick, after the last tick of a step or of a network, when it was saved, or at its end."""

    moment: Moment
    done: int  # ticks
    total: int
    networks: int  # that are done with
    steps: int  # of every class, done since the beginning
    loss: float | None  # mean over the classes, of the last whole step
    images_per_second: float  # real and synthetic ones, matched
    seconds: float  # since the beginning, interruptions left out
    seconds_left: float | None
    # as they are; complete after a network, when saved and at the end
    images: Callable[[], CondensedSet] = field(repr=False)
    stopping: Callable[[], bool] = field(repr=False)  # whether the run was told to end meanwhile: then watch no longer


Observer = Callable[[Status], None]


def snapshots(path: Path) -> Observer:
    """Draw a contact sheet, in place of the one before, whenever the run is saved and at its end."""

    def look(status: Status) -> None:
        if status.moment in ("saved", "finished"):
            from condense_once.condensed.contact_sheet import contact_sheet
            from condense_once.files import atomic_file

            sheet, _ = contact_sheet(status.images())
            with atomic_file(path, force=True) as out:
                sheet.save(out, "PNG")

    return look


class _BrokenOff(Exception):
    """There is no time for an evaluation any more."""


def accuracies(
    held: Source,
    every: int,
    say: Callable[[int, float], None],
    *,
    net: NetChoice | None = None,
    seed: int = 0,
    compute: ComputeConfig | None = None,
) -> Observer:
    """Evaluate by the `quick` protocol on training images that were held back, after every so many networks."""
    how = compute or ComputeConfig()

    def look(status: Status) -> None:
        if status.moment != "network" or status.networks % every:
            return
        from condense_once.evaluation.evaluate import evaluate

        def go_on(*_: int) -> None:
            if status.stopping():
                raise _BrokenOff

        with suppress(_BrokenOff):
            go_on()
            result = evaluate(
                status.images(),
                held,
                protocol="quick",
                net=net,
                repeats=1,
                seed=seed,
                compute=how,
                progress=go_on,
            )
            say(status.networks, result.mean)

    return look


class TensorBoard:
    """Losses, speed and accuracies as curves in a folder that TensorBoard reads."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtra("Writing for TensorBoard", "tensorboard") from None
        self._writer: Any = SummaryWriter(str(folder))

    def __call__(self, status: Status) -> None:
        if status.moment == "step" and status.loss is not None:
            self._writer.add_scalar("loss", status.loss, status.steps)
            self._writer.add_scalar("images per second", status.images_per_second, status.steps)
            self._writer.flush()

    def accuracy(self, networks: int, share: float) -> None:
        self._writer.add_scalar("accuracy on held-back images", share, networks)
        self._writer.flush()
