"""What to condense and how: the one configuration of a run."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from condense_once.condensed.mosaic import cell_size
from condense_once.condensed.set import MAX_CLASSES, CondensedSet
from condense_once.condensing.registry import CONDENSERS, PRESETS
from condense_once.data.catalogue import SOURCES
from condense_once.data.metadata import normalised_like
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import NetChoice, Shape, net_name

BEST_IN_MINUTES = "tgdd"  # the strongest sets of any method in 10 to 90 minutes of a core: results/README.md
SAMPLED = 16  # images that tell one source from another


@dataclass(frozen=True)
class CondenseConfig:
    """Two equal configs make the same set, unless `minutes` shortens the run by what was measured."""

    method: str
    ipc: int  # images per class
    factor: int  # patches along each side of a stored image
    net: NetChoice
    seed: int = 0
    preset: str | None = None
    minutes: float | None = None  # time budget, interruptions excluded
    overrides: Mapping[str, Any] = field(default_factory=dict)  # of the recipe, by field
    init: CondensedSet | None = None  # a set to start from
    nested: bool = False  # whether every prefix of its images is to be a good set, too

    @classmethod
    def for_source(
        cls,
        source: Source,
        *,
        ipc: int,
        method: str | None = None,
        factor: int | None = None,
        net: NetChoice | None = None,
        preset: str | None = None,
        minutes: float | None = None,
        device: str = "cpu",
        **others: Any,
    ) -> CondenseConfig:
        """Fill in defaults that depend on the images or on each other, and refuse contradictions."""
        if preset is not None:
            of_preset = PRESETS.get(preset).method
            if method not in (None, of_preset):
                raise BadOption(f"The preset {preset!r} belongs to {of_preset}, not to {method}; leave out `method`.")
            method = of_preset
        if method is None and minutes is None:
            raise BadOption(f"Pass a `method` ({', '.join(CONDENSERS.names())}), a `preset`, or a budget of `minutes`.")
        if minutes is not None and not 0 <= minutes < math.inf:
            raise BadOption(f"`minutes` must be at least zero and finite, not {minutes:g}.")
        method = method or BEST_IN_MINUTES
        info, shape = CONDENSERS.get(method), source.train.shape
        quick = minutes is not None and device == "cpu"
        config = cls(
            method=method,
            ipc=ipc,
            factor=info.factor(shape) if factor is None else factor,
            net=net or info.net(shape, quick=quick),
            preset=preset,
            minutes=minutes,
            **others,
        )
        config.check(source)
        return config

    @property
    def patches_per_class(self) -> int:
        return self.ipc * self.factor**2

    def check(self, source: Source) -> None:
        if self.ipc < 1:
            raise BadOption(f"`ipc` must be at least 1 image per class, not {self.ipc}.")
        if len(source.classes) > MAX_CLASSES:
            raise BadOption(f"{source.name} has {len(source.classes)} classes; at most {MAX_CLASSES} are supported.")
        cell_size(source.train.shape[1:], self.factor)  # refuses a factor that leaves no pixels
        counts = np.bincount(np.asarray(source.train.labels), minlength=len(source.classes))
        for name, count in zip(source.classes, counts, strict=True):
            if not count:
                raise BadOption(f"Class {name!r} of {source.name} has no training images; leave it out.")

    def preset_overrides(self, shape: Shape) -> Mapping[str, Any]:
        return {} if self.preset is None else PRESETS.get(self.preset).overrides_for(shape, self.ipc, self.factor)

    def identity(self, source: Source) -> dict[str, Any]:
        """What a checkpoint must share with the run that resumes it, as plain JSON."""
        identity = {
            "source": source.name,
            "images": fingerprint(source),
            "method": self.method,
            "preset": self.preset,
            "ipc": self.ipc,
            "factor": self.factor,
            "seed": self.seed,
            "net": net_name(self.net),
            "overrides": {name: _plain(self.overrides[name]) for name in sorted(self.overrides)},
            "init": None if self.init is None else f"{zlib.crc32(self.init.cells.tobytes()):08x}",
        }
        return identity | ({"nested": True} if self.nested else {})


def preset_source(source: Source, preset: str | None) -> Source:
    """The source with the mean and std that a preset normalises its images by."""
    like = None if preset is None else PRESETS.get(preset).like
    return normalised_like(source, None if like is None else SOURCES.get(like))


def fingerprint(source: Source) -> str:
    """A checksum of all labels and a few images, to tell one source from another."""
    labels = np.asarray(source.train.labels)
    rows = np.unique(np.linspace(0, len(labels) - 1, SAMPLED).astype(np.int64))
    return f"{len(labels)} {zlib.crc32(labels.tobytes()):08x} {zlib.crc32(source.train.take(rows).tobytes()):08x}"


def _plain(value: Any) -> Any:
    """A numpy scalar as one of Python's own, which JSON accepts."""
    return value.item() if isinstance(value, np.generic) else value
