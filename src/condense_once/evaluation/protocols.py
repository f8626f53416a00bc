"""Protocols: how a set is turned into an accuracy, as frozen data with an id."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, TypeAlias

from condense_once.augment.names import without
from condense_once.condensed.set import CondensedSet
from condense_once.data.catalogue import MNIST, SVHN
from condense_once.nets import is_large
from condense_once.registry import Registry
from condense_once.train.recipe import Recipe

DIGITS = (MNIST, SVHN)  # a flipped digit is not that digit: IDC does not flip them
EpochsByIpc: TypeAlias = tuple[tuple[float, int], ...]  # (up to this many patches per class, epochs)

# What goes into an id, version 1: key → attribute. Keys and their order never change, as ids are stored with results;
# attributes may be renamed. A field that comes later is None by default, and then left out.
ID_FIELDS = {
    "name": "name",
    "small": "small",
    "large": "large",
    "looks": "num_evals",
    "report": "report",
    "normalise_again": "double_normalise",
    "lengths": "epochs_by_ipc",
}
RECIPE_ID_FIELDS = {
    "epochs": "epochs",
    "batch": "batch",
    "lr": "lr",
    "momentum": "momentum",
    "weight_decay": "weight_decay",
    "gamma": "gamma",
    "schedule": "schedule",
    "augmentation": "augmentation",
    "cutmix": "cutmix",
}


@dataclass(frozen=True)
class Protocol:
    """A recipe per image size, how often to test, and what to report. No protocol flips digits."""

    name: str
    summary: str
    small: Recipe  # for images of up to 64 pixels per side
    large: Recipe  # for larger ones
    num_evals: int = 1  # tests per run, evenly spaced; the last one is at the end
    report: Literal["last", "best and last"] = "last"  # the authors report both, with the std of a population
    double_normalise: bool = False  # normalise values of any space as if they were pixels, as the authors' loader does
    epochs_by_ipc: EpochsByIpc | None = None  # epochs for large images, by the size of the set

    @property
    def id(self) -> str:
        """The name with a hash of everything that can change a result."""
        fields = {key: getattr(self, attribute) for key, attribute in ID_FIELDS.items()}
        fields = {key: _id_value(value) for key, value in fields.items() if value is not None}
        return f"{self.name}-{hashlib.sha256(repr(fields).encode()).hexdigest()[:8]}"

    def recipe(self, data: CondensedSet, test: str | None = None) -> Recipe:
        """The recipe for a set that is tested on the source named `test`."""
        large = is_large(data.shape)
        recipe = self.large if large else self.small
        if large and self.epochs_by_ipc is not None:
            recipe = replace(recipe, epochs=_epochs(self.epochs_by_ipc, patches_per_class(data), len(data.classes)))
        if _shows_digits(data, test):
            recipe = replace(recipe, augmentation=without(recipe.augmentation, "flip"))
        return recipe


def as_protocol(protocol: str | Protocol) -> Protocol:
    """A protocol, or the registered one of that name."""
    return protocol if isinstance(protocol, Protocol) else PROTOCOLS.get(protocol)


def patches_per_class(data: CondensedSet) -> int:
    """The number of patches per class of the set before it was cut, as far as the remaining patches show.

    Class c had the origins from c·n on. The highest one left gives n or, after a deep cut, slightly less.
    """
    return int((data.origin // (data.labels + 1)).max()) + 1


def _id_value(value: Any) -> Any:
    if isinstance(value, Recipe):
        return {key: getattr(value, attribute) for key, attribute in RECIPE_ID_FIELDS.items()}
    return value


def _epochs(epochs_by_ipc: EpochsByIpc, patches: int, classes: int) -> int:
    epochs = next(epochs for most, epochs in epochs_by_ipc if patches <= most)
    return 2 * epochs // 300 * 100 if classes == 100 else epochs  # IDC: two thirds, in whole hundreds


def _shows_digits(data: CondensedSet, test: str | None) -> bool:
    """Whether the test images are digits by name, or the set is normalised like a set of digits."""
    space = data.space
    return any(
        test == known.name or (data.shape, space.mean, space.std) == (known.shape, known.mean, known.std)
        for known in DIGITS
    )


PROTOCOLS: Registry[Protocol] = Registry("protocols")

_PAPER = Recipe(epochs=1000)
_PAPER_LARGE = replace(_PAPER, augmentation="imagenet")

PAPER = PROTOCOLS.add(
    Protocol(
        "paper",
        "as in the paper: 1000 epochs, CutMix on half of the batches, last-epoch accuracy",
        _PAPER,
        _PAPER_LARGE,
    )
)
QUICK = PROTOCOLS.add(
    Protocol(
        "quick",
        "300 epochs at a higher learning rate: ranks sets as `paper` does, in three tenths of the steps",
        replace(_PAPER, epochs=300, lr=0.02),
        replace(_PAPER_LARGE, epochs=300, lr=0.02),
    )
)
PROTOCOLS.add(
    replace(
        QUICK,
        name="quick-twice",
        summary="`quick` with normalised sets normalised a second time, to show the effect",
        double_normalise=True,
    )
)
AUTHORS = PROTOCOLS.add(
    Protocol(
        "authors",
        "as the authors' code: best of four tests on the test split, normalised sets normalised twice; for comparison only",
        _PAPER,
        replace(_PAPER_LARGE, cutmix=1.0),
        num_evals=4,
        report="best and last",
        double_normalise=True,
        epochs_by_ipc=((1, 3000), (10, 2000), (50, 1500), (200, 1000), (500, 500), (inf, 300)),
    )
)
