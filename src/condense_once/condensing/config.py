"""What a user asks for, filled in and checked."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from condense_once.condensed.set import CondensedSet
from condense_once.condensing.matching.presets import PRESETS
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.problem import Problem
from condense_once.condensing.registry import CONDENSERS
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import NetChoice, net_name

RATES = ("rate", "net_rate")  # what a run that has gone wrong may go on with in other sizes
SAMPLED = 16  # images that tell one source from another


@dataclass(frozen=True)
class Request:
    """What is asked for. Two equal requests make the same set, unless `minutes` cuts the recipe by what was timed."""

    method: str
    ipc: int
    factor: int
    seed: int = 0
    net: NetChoice | None = None
    preset: str | None = None
    minutes: float | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    start: CondensedSet | None = None

    def recipe(self, problem: Problem) -> MatchingRecipe:
        """The paper's, as changed by the preset and by hand."""
        if self.preset is None:
            base = CONDENSERS.get(self.method).recipe(problem.shape, self.ipc, self.factor)
        else:
            base = PRESETS.get(self.preset).recipe(problem.shape, self.ipc, self.factor)
        recipe = base.changed(self.changes)
        if self.start is not None:
            return replace(recipe, start="given")
        if recipe.start == "given":
            raise BadOption("A start that is given wants a set to begin from: pass --start FILE.")
        return recipe

    @property
    def rates(self) -> dict[str, Any]:
        """Those of the changes that a run which is resumed may have new."""
        return {name: value for name, value in self.changes.items() if name in RATES}

    def described(self, source: Source, net: NetChoice) -> dict[str, Any]:
        """As plain JSON, with what tells this source from others."""
        return {
            "source": source.name,
            "images": fingerprint(source),
            "method": self.method,
            "preset": self.preset,
            "images per class": self.ipc,
            "factor": self.factor,
            "seed": self.seed,
            "net": net_name(net),
            "minutes": self.minutes,
            "changes": {name: plain(self.changes[name]) for name in sorted(self.changes)},
            "start": None if self.start is None else f"{zlib.crc32(self.start.cells.tobytes()):08x}",
        }


def make_request(
    source: Source,
    *,
    ipc: int,
    method: str | None = None,
    factor: int | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    **others: Any,
) -> Request:
    """Fill in what follows from something else, and refuse what contradicts."""
    if method is None and preset is None:
        raise BadOption(f"Say how to condense: --method ({', '.join(CONDENSERS.names())}) or --preset.")
    if preset is not None:
        chosen = PRESETS.get(preset).method
        if method not in (None, chosen):
            raise BadOption(f"The preset {preset!r} is one of {chosen}, not of {method}; leave --method out.")
        method = chosen
    if minutes is not None and not 0 < minutes < float("inf"):
        raise BadOption(f"A run takes some minutes, not {minutes:g}.")
    assert method is not None  # noqa: S101  # by the first refusal
    info = CONDENSERS.get(method)
    shape = source.train.shape
    return Request(
        method=method,
        ipc=ipc,
        factor=info.default_factor(shape) if factor is None else factor,
        preset=preset,
        minutes=minutes,
        **others,
    )


def plain(value: Any) -> Any:
    """A number of numpy's as one of Python's own, which JSON knows.

    >>> plain(np.int64(2)), plain("x")
    (2, 'x')
    """
    return value.item() if isinstance(value, np.generic) else value


def fingerprint(source: Source) -> str:
    """A checksum of all labels and a few images: enough to notice that a source is another one."""
    labels = np.asarray(source.train.labels)
    rows = np.unique(np.linspace(0, len(labels) - 1, SAMPLED).astype(np.int64))
    return f"{len(labels)} {zlib.crc32(labels.tobytes()):08x} {zlib.crc32(source.train.take(rows).tobytes()):08x}"
