"""Protocols: how a set is turned into an accuracy, as frozen data with an identity of its own."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Literal

from condense_once.registry import Registry
from condense_once.train.engine import LARGE
from condense_once.train.recipe import Recipe


@dataclass(frozen=True)
class Protocol:
    name: str
    summary: str
    small: Recipe  # for images of up to 64 pixels a side
    large: Recipe  # for larger ones
    looks: int = 1  # how often the test split is looked at, at equal distances; the last look is at the end
    report: Literal["last", "best"] = "last"
    normalise_again: bool = False  # normalise sets that are normalised already, as the authors' loader does

    @property
    def id(self) -> str:
        """The name with a fingerprint of everything that can change a result."""
        facts = {key: value for key, value in asdict(self).items() if key != "summary"}
        return f"{self.name}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:8]}"

    def recipe(self, size: tuple[int, int]) -> Recipe:
        return self.small if max(size) <= LARGE else self.large


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
        "300 epochs at a higher rate: made to rank sets as `paper` does, in a third of the time",
        replace(_PAPER, epochs=300, lr=0.02),
        replace(_PAPER_LARGE, epochs=300, lr=0.02),
    )
)
AUTHORS = PROTOCOLS.add(
    Protocol(
        "authors",
        "as the authors' program: best of four looks at the test split, normalised sets normalised again; to compare only",
        _PAPER,
        replace(_PAPER_LARGE, cutmix=1.0),
        looks=4,
        report="best",
        normalise_again=True,
    )
)
