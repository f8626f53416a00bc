"""Slimming: shrink a condensed set without its source, by condensing the set itself.

Resizing keeps some patches as they are. Slimming starts from these and refines them until the small set does to networks what
the whole set does; the whole set takes the place of the real images.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.condensed.subset import rank_within_class, resize
from condense_once.condensing.callbacks import Callback
from condense_once.condensing.runner import SAVE_EVERY, condense
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import NetChoice
from condense_once.train.compute_config import ComputeConfig

MINUTES = 3.0
# Of `tgdd`: experts on a few hundred patches take seconds, and the targets are means of whole classes.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "tgdd": {
        "expert_epochs": 60,
        "expert_every": 4,
        "expert_batch": 64,
        "real_batch": 256,
        "steps": 1,
        "image_lr": 0.1,
        "final_lr": 1.0,
    },
    "idc": {},
}


def slim(
    data: CondensedSet | str | Path,
    *,
    ipc: int,
    method: Literal["idc", "tgdd"] = "tgdd",
    minutes: float | None = MINUTES,
    nested: bool = False,
    net: NetChoice | None = None,
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    save_every: float = SAVE_EVERY,
    compute: ComputeConfig | None = None,
    callbacks: Sequence[Callback] = (),
    notify: Callable[[str], None] | None = None,
    began: float | None = None,
) -> CondensedSet:
    """A set of `ipc` images per class that stands for the whole ranked set `data`; no real image is needed.

    It starts from the patches that `resize` would keep. With `nested`, every prefix of the result is refined, too, so that one
    slimmed file serves all sizes up to `ipc`. The other parameters are those of `condense`; a run with a `checkpoint` keeps its
    experts beside it (`experts_beside`).
    """
    if method not in SETTINGS:
        raise BadOption(f"A set is slimmed by the `method` {' or '.join(SETTINGS)}, not {method!r}.")
    whole = as_set(data)
    whole = whole if whole.space.kind == "pixels" else _as_normalised(whole)
    with _experts_folder(checkpoint) as folder:
        made = condense(
            patches_as_source(whole),
            ipc=ipc,
            method=method,
            factor=whole.factor,
            minutes=minutes,
            net=net,
            seed=seed,
            overrides={**settings_for(method, whole.space), **(overrides or {})},
            init=starting_set(whole, ipc),
            nested=nested,
            experts=folder,
            checkpoint=checkpoint,
            resume=resume,
            save_every=save_every,
            compute=compute,
            callbacks=callbacks,
            notify=notify,
            began=began,
        )
    provenance = {**made.provenance, "slimmed": {"from": whole.name, "patches": len(whole), "rule": _rule(whole)}}
    name = f"{whole.name}-slim-ipc{ipc}"
    return replace(made, name=name, space=as_set(data).space, provenance=provenance)


def settings_for(method: str, space: Space) -> dict[str, Any]:
    """The settings of a method for values of this space.

    A rate for pixels in 0…1 is too small for values that are divided by `std`: their gradient is smaller by as much, and they
    have farther to go by as much again.

    >>> settings_for("tgdd", Space("normalised", (0.5,), (0.25,)))["image_lr"]
    1.6
    """
    settings = {**SETTINGS[method], "space": space.kind}
    if "image_lr" in settings and space.kind != "pixels":
        settings["image_lr"] /= float(np.mean(space.std)) ** 2
    return settings


def starting_set(whole: CondensedSet, ipc: int) -> CondensedSet:
    """The patches that `resize` keeps, packed by rank: the best of a class fill its first image."""
    kept = resize(whole, ipc=ipc)
    if len(set(kept.counts().tolist())) != 1:
        raise BadOption(
            f"{whole.name} does not have {ipc} images in every class, so it cannot be slimmed to as many; lower `ipc` or"
            " rank it balanced."
        )
    image, cell = np.divmod(rank_within_class(kept.labels), kept.factor**2)
    origin = kept.labels * (ipc * kept.factor**2) + cell * ipc + image  # class by class, cell by cell, image by image
    return replace(kept, origin=origin, scores={}, ranking=None)


def patches_as_source(whole: CondensedSet) -> Source:
    """All patches of a set as training images."""
    return Source(whole.name, whole.classes, whole.space.mean, whole.space.std, {"train": PatchSplit(whole)})


@dataclass(frozen=True)
class PatchSplit:
    """The patches of a set on the scale of 8-bit pixels, but neither rounded nor clipped."""

    whole: CondensedSet

    @property
    def labels(self) -> NDArray[np.int64]:
        return self.whole.labels

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.whole.shape

    def take(self, rows: slice | NDArray[Any]) -> NDArray[Any]:
        return self.whole.space.to_pixels(self.whole.patches(rows)) * np.float32(255)


def _as_normalised(whole: CondensedSet) -> CondensedSet:
    """A set of network inputs, whitened or not, as one whose values are normalised: nothing needs its pixels."""
    return replace(whole, space=Space("normalised", whole.space.mean, whole.space.std))


def _rule(whole: CondensedSet) -> str:
    ranking = whole.ranking
    return "in stored order" if ranking is None else f"{ranking.metric}, {ranking.prefer} first"


def experts_beside(checkpoint: str | Path) -> Path:
    """The folder of the experts of a run with this checkpoint; whoever removes the one removes the other."""
    return Path(f"{checkpoint}.experts")


def _experts_folder(checkpoint: str | Path | None) -> AbstractContextManager[str | Path]:
    """Where experts trained on the set itself are kept, which serve this run only."""
    return tempfile.TemporaryDirectory() if checkpoint is None else nullcontext(experts_beside(checkpoint))
