"""Simulated devices: how much each can store and train on, and what it takes of the one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condense_once import BadOption
from condense_once.device import DeviceSet, DeviceSubset, open_set

EPOCHS = 100  # of training on every device
LEVELS = (1, 2, 5, 10, 20, 40)  # patches per class; a device takes the largest level that fits


@dataclass(frozen=True)
class Device:
    """A device with its budgets."""

    name: str
    room: int  # bytes for the file it keeps
    seconds: float  # it may train
    speed: float  # training images per second

    @property
    def trainable(self) -> int:
        """The patches it can train on for `EPOCHS` within its time.

        >>> Device("phone", room=65536, seconds=20, speed=500).trainable
        100
        """
        return int(self.seconds * self.speed / EPOCHS)


def make_fleet(count: int = 50, seed: int = 0) -> list[Device]:
    """Devices of the same seed are the same: room from 16 to 512 KiB, 5 to 60 s, 100 to 2000 images/s, all log-uniform.

    >>> fleet = make_fleet(50)
    >>> len(fleet), fleet == make_fleet(50), fleet == make_fleet(50, seed=1)
    (50, True, False)
    """
    if count < 1:
        raise BadOption(f"A fleet needs a `count` of at least 1 device, not {count}.")
    rng = np.random.default_rng(seed)

    def log_uniform(low: float, high: float) -> list[float]:
        return [float(value) for value in np.exp(rng.uniform(np.log(low), np.log(high), count))]

    budgets = zip(log_uniform(16 * 1024, 512 * 1024), log_uniform(5, 60), log_uniform(100, 2000), strict=True)
    return [Device(f"device {number:02}", int(room), *rest) for number, (room, *rest) in enumerate(budgets)]


def level_of(device: Device, opened: DeviceSet) -> int:
    """The largest of `LEVELS`, in patches per class, within both budgets of a device; 0 if not even the smallest fits."""
    classes = len(opened.header.classes)
    try:
        fitting = len(opened.take(bytes=device.room)) // classes
    except BadOption:  # not one patch per class
        return 0
    within = min(fitting, device.trainable // classes)
    return max((level for level in LEVELS if level <= within), default=0)


def take_share(where: str | Path, device: Device) -> DeviceSubset | None:
    """What a device reads of the file, by path or URL, and nothing else of it; None if it has no room for any level."""
    opened = open_set(where)
    level = level_of(device, opened)
    return opened.take(total=level * len(opened.header.classes)) if level else None
