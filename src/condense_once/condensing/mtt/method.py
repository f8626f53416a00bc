"""MTT (Cazenavette et al., Dataset Distillation by Matching Training Trajectories, 2022).

Its settings differ by dataset, images per class and value space. They are those of its README and of scripts that repeat its
experiments; the table that the authors publish is a picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from condense_once.condensing.mtt.recipe import MttRecipe
from condense_once.condensing.registry import CONDENSERS, PRESETS, CondenserInfo, Preset
from condense_once.nets.registry import Shape
from condense_once.registry import Lazy

RESUME_WITH = frozenset({"image_lr", "lr_lr"})  # what a resumed run may change


class Settings(NamedTuple):
    """What MTT changes by dataset, images per class and value space."""

    student_steps: int
    ahead: int
    max_start: int
    image_lr: float
    lr_lr: float
    student_lr: float = 0.01
    student_batch: int = 0


BySize = Mapping[int, Settings]  # by images per class

CIFAR10: BySize = {
    1: Settings(50, 2, 5, 1e3, 1e-7),
    10: Settings(30, 2, 15, 1e3, 1e-5),
    50: Settings(30, 2, 40, 1e3, 1e-5, student_lr=0.001),
}
CIFAR10_ZCA: BySize = {
    1: Settings(50, 2, 2, 1e2, 1e-7),
    10: Settings(30, 2, 20, 1e5, 1e-4),
    50: Settings(30, 2, 20, 1e2, 1e-5, student_lr=0.001),
}
CIFAR100: BySize = {10: Settings(20, 2, 20, 1e3, 1e-5)}
CIFAR100_ZCA: BySize = {
    1: Settings(20, 3, 20, 1e3, 1e-5),
    10: Settings(20, 2, 20, 1e3, 1e-5),
    50: Settings(80, 2, 40, 1e3, 1e-5, student_batch=125),
}


def settings_for(by_size: BySize, ipc: int) -> dict[str, Any]:
    """The settings for the number of images per class that is nearest by ratio, as recipe fields.

    >>> [settings_for(CIFAR10, ipc)["max_start"] for ipc in (1, 3, 4, 10, 22, 23)]
    [5, 5, 15, 15, 15, 40]
    """
    size = min(by_size, key=lambda size: max(size / ipc, ipc / size))
    return by_size[size]._asdict()


def mtt(shape: Shape, ipc: int, factor: int) -> MttRecipe:
    """Match one hundred trajectories of fifty epochs; the settings are those for CIFAR-10 without ZCA."""
    return MttRecipe(method="mtt", init="random", iterations=5000, **settings_for(CIFAR10, ipc))


def _by_size(by_size: BySize, shape: Shape, ipc: int, factor: int) -> Mapping[str, Any]:
    return settings_for(by_size, ipc)


CONDENSERS.add(
    CondenserInfo(
        "mtt",
        "networks trained on the images follow those trained on real ones, with a learned step size",
        Lazy("condense_once.condensing.mtt.build:build_mtt"),
        resume_with=RESUME_WITH,
    )
)
for _name, _text, _space, _sizes in (
    ("mtt-cifar10-zca", "CIFAR-10 with ZCA", "zca", CIFAR10_ZCA),
    ("mtt-cifar100", "CIFAR-100", "normalised", CIFAR100),
    ("mtt-cifar100-zca", "CIFAR-100 with ZCA", "zca", CIFAR100_ZCA),
):
    _summary = f"MTT's settings for {_text}, by images per class"
    PRESETS.add(Preset(_name, _summary, "mtt", {"space": _space}, by_size=partial(_by_size, _sizes)))
