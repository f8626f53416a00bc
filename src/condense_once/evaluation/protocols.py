"""Protocols: how a set is turned into an accuracy, as frozen data with an identity of its own."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Literal

from condense_once.augment.strategy import without
from condense_once.condensed.set import CondensedSet
from condense_once.data.catalogue import MNIST, SVHN
from condense_once.nets import is_large
from condense_once.registry import Registry
from condense_once.train.recipe import Recipe

DIGITS = (MNIST, SVHN)  # a mirrored digit is another sign: IDC does not flip them
Lengths = tuple[tuple[float, int], ...]  # up to so many patches per class: so many epochs


@dataclass(frozen=True)
class Protocol:
    """Recipes by the size of the images, and how often to test and what to report. No protocol mirrors digits."""

    name: str
    summary: str
    small: Recipe  # for images of up to 64 pixels a side
    large: Recipe  # for larger ones
    looks: int = 1  # how often the test split is looked at, at equal distances; the last look is at the end
    report: Literal["last", "best and last"] = "last"  # the authors give both, with the deviation of a population
    normalise_again: bool = False  # take values of any space for pixels, as the authors' loader does
    lengths: Lengths | None = None  # epochs for large images, where they depend on the set

    @property
    def id(self) -> str:
        """The name with a fingerprint of everything that can change a result."""
        # what a protocol leaves open is no fact of it, so that ids outlive new fields
        facts = {key: value for key, value in asdict(self).items() if key != "summary" and value is not None}
        return f"{self.name}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:8]}"

    def recipe(self, data: CondensedSet, test: str | None = None) -> Recipe:
        """How networks are trained on a set that will be tested on the source called `test`."""
        large = is_large(data.shape)
        recipe = self.large if large else self.small
        if large and self.lengths is not None:
            recipe = replace(recipe, epochs=_length(self.lengths, patches_a_class(data), len(data.classes)))
        if _shows_digits(data, test):
            recipe = replace(recipe, augmentation=without(recipe.augmentation, "flip"))
        return recipe


def patches_a_class(data: CondensedSet) -> int:
    """How many patches per class the set had before it was cut, as far as those that are left can tell.

    Class c had the origins from c·n on. The highest that is left gives n or, after a deep cut, a little less.
    """
    return int((data.origin // (data.labels + 1)).max()) + 1


def _length(lengths: Lengths, patches: int, classes: int) -> int:
    epochs = next(epochs for most, epochs in lengths if patches <= most)
    return 2 * epochs // 300 * 100 if classes == 100 else epochs  # IDC's: two thirds, in whole hundreds


def _shows_digits(data: CondensedSet, test: str | None) -> bool:
    """Whether the test images are digits by name, or the set is normalised as sets of digits are."""
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
        "paper", "the paper's: 1000 epochs, CutMix half of the time, accuracy at the last epoch", _PAPER, _PAPER_LARGE
    )
)
QUICK = PROTOCOLS.add(
    Protocol(
        "quick",
        "300 epochs at a higher rate: made to rank sets as `paper` does, with three tenths of the steps",
        replace(_PAPER, epochs=300, lr=0.02),
        replace(_PAPER_LARGE, epochs=300, lr=0.02),
    )
)
PROTOCOLS.add(
    replace(
        QUICK,
        name="quick-twice",
        summary="as `quick`, but normalised sets are normalised again: to show what that does",
        normalise_again=True,
    )
)
AUTHORS = PROTOCOLS.add(
    Protocol(
        "authors",
        "as the authors' program: best of four looks at the test split, normalised sets normalised again; to compare only",
        _PAPER,
        replace(_PAPER_LARGE, cutmix=1.0),
        looks=4,
        report="best and last",
        normalise_again=True,
        lengths=((1, 3000), (10, 2000), (50, 1500), (200, 1000), (500, 500), (inf, 300)),
    )
)
