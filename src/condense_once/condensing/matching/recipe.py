"""How a set is condensed: everything that decides the outcome, as frozen data. A method is a way to fill this in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from operator import index
from typing import Any, Literal, get_args, get_type_hints

from condense_once.augment import Augmentation, CutMix
from condense_once.errors import BadOption, UnknownName
from condense_once.registry import nearest

Start = Literal["first", "representatives", "noise", "given"]
Distance = Literal["mse", "l1", "cosine", "features"]
Lessons = Literal["real", "synthetic", "none"]
Decoding = Literal["single", "bound"]
ImageSpace = Literal["pixels", "normalised"]


@dataclass(frozen=True)
class MatchingRecipe:
    """Images of each class are moved until a network sees in them what it sees in real ones; many networks, one after another."""

    method: str
    space: ImageSpace  # in which the images are moved; pixels are kept in 0…1, normalised values are free
    start: Start  # the first real images of each class, the most typical ones, noise, or a set that is given
    distance: Distance  # between gradients of the loss (mse, l1, cosine), or between mean features
    iterations: int  # networks, each drawn anew; none leaves the images as they start
    steps: int  # of every class, with one network
    rate: float  # learning rate of the images
    momentum: float = 0.5
    glide: bool = False  # momentum goes on moving a class while it is the others' turn, as one optimiser for all would
    decode: Decoding = "single"
    real_batch: int = 64
    patches: int = 128  # of one class in one step, at most
    augmentation: str = "none"  # the same for real and synthetic images of a step
    one_change: bool = False  # DSA's reading of the augmentation: one of its changes a step, not all
    keep_batch: int = 0  # steps for which a batch of the most typical real images is kept; 0: shuffled batches instead
    pool: int = 0  # real images of a class among which typical ones are looked for; 0: all
    lessons: Lessons = "none"  # what the network learns from between two steps
    lesson_images: int = 0  # real images of one lesson
    lesson_epochs: int = 0  # or passes through the synthetic images
    early: int = 0  # passes through the real images before a network's first step
    net_rate: float = 0.01
    net_momentum: float = 0.9
    net_decay: float = 5e-4
    net_batch: int = 64
    net_augmentation: str = "none"
    net_cutmix: float = 0.0

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            if (options := get_args(kind)) and getattr(self, name) not in options:
                raise BadOption(f"A recipe's {name} is {_either(options)}, not {getattr(self, name)!r}.")
        counts = {"iterations": 0, "steps": 1, "real_batch": 1, "patches": 1, "net_batch": 1}
        counts |= dict.fromkeys(("keep_batch", "pool", "lesson_images", "lesson_epochs", "early"), 0)
        for name, least in counts.items():
            if getattr(self, name) < least:
                raise BadOption(f"A recipe's {name} must be at least {least}, not {getattr(self, name)}.")
        if not (math.isfinite(self.rate) and self.rate > 0 and math.isfinite(self.net_rate) and self.net_rate > 0):
            raise BadOption(f"Learning rates must be above zero, not {self.rate} and {self.net_rate}.")
        if not (math.isfinite(self.net_decay) and self.net_decay >= 0):
            raise BadOption(f"A recipe's net_decay must not be below zero, as {self.net_decay} is.")
        if not 0 <= self.momentum < 1 or not 0 <= self.net_momentum < 1:
            raise BadOption(f"Momentum must be at least 0 and below 1, not {self.momentum} and {self.net_momentum}.")
        if self.lessons == "real" and not self.lesson_images:
            raise BadOption("A recipe with lessons from real images needs lesson_images above zero.")
        for strategy in (self.augmentation, self.net_augmentation):
            Augmentation.parse(strategy)
        CutMix(self.net_cutmix)

    def changed(self, changes: Mapping[str, Any]) -> MatchingRecipe:
        """The same recipe but for some fields; numbers and truths may come as text."""
        kinds = get_type_hints(type(self))
        known = [field.name for field in fields(self) if field.name != "method"]
        for name in changes:
            if name not in known:
                raise UnknownName(f"A recipe has no {name!r} to set; {nearest(name, known)}")
        return replace(self, **{name: _read(name, value, kinds[name]) for name, value in changes.items()})


def _read(name: str, value: Any, kind: Any) -> Any:
    """A value of the kind that a field has, from one of Python's or numpy's, or from text."""
    if kind not in _KINDS:
        return value  # one of several words, which the recipe checks itself
    what, read = _KINDS[kind]
    try:
        return read(value)
    except (KeyError, TypeError, ValueError):
        raise BadOption(f"A recipe's {name} is {what}, not {value!r}.") from None


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, str) else index(_no_truth(value))


def _number(value: Any) -> float:
    return float(_no_truth(value))


def _no_truth(value: Any) -> Any:
    """Python takes truths for numbers; nobody means that."""
    if isinstance(value, bool):
        raise TypeError
    return value


_KINDS: Mapping[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("a whole number", _whole),
    float: ("a number", _number),
    bool: ("true or false", lambda value: {"true": True, "false": False, True: True, False: False}[value]),
}


def _either(options: tuple[Any, ...]) -> str:
    return f"{', '.join(map(str, options[:-1]))} or {options[-1]}"
