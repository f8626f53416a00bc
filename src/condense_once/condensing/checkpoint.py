"""Checkpoints: a run on disk, complete or not there at all, with nothing in it that could be executed."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensing.array_file import FileKind
from condense_once.condensing.config import fingerprint
from condense_once.data.source import Source
from condense_once.data.split import has_holdout, toggle_holdout
from condense_once.errors import BadFile, BadOption
from condense_once.files import refuse_existing, remove_abandoned
from condense_once.text import short_line

FILE = FileKind("a checkpoint", "condense_once.checkpoint", version=3)
STEPS, LOSSES = "curve/steps", "curve/losses"  # the curve grows with the run, so it is stored as arrays


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is, the config it belongs to, and the arrays of its condenser."""

    identity: Mapping[str, Any]  # of the config
    recipe: Mapping[str, Any]  # of the condenser, after it was fitted to a time budget
    done: int
    seconds: float
    curve: list[tuple[int, float]]  # (steps, loss)
    losses: list[float]  # of the step that is under way, one per class so far
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)

    def save(self, path: Path) -> None:
        """Write it in place of the one before."""
        steps, losses = zip(*self.curve, strict=True) if self.curve else ((), ())
        arrays = {**self.arrays, STEPS: np.array(steps, np.uint32), LOSSES: np.array(losses, np.float32)}
        FILE.write(path, {name: value for name, value in vars(self).items() if name not in ("arrays", "curve")}, arrays)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read and verify a checkpoint."""
    header, arrays = FILE.read(path)
    try:
        steps, losses, done, seconds = arrays.pop(STEPS), arrays.pop(LOSSES), header["done"], header["seconds"]
        if type(done) is not int or not 0 <= float(seconds) < math.inf or steps.ndim != 1 or losses.ndim != 1:
            raise ValueError("no run is at such a place")
        return Checkpoint(
            identity=dict(header["identity"]),
            recipe=dict(header["recipe"]),
            done=done,
            seconds=float(seconds),
            curve=list(zip(steps.tolist(), losses.tolist(), strict=True)),
            losses=[float(loss) for loss in header["losses"]],
            arrays=arrays,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadFile(f"{path} is damaged: its header is invalid ({short_line(error)}).") from None


def find_checkpoint(path: Path | None, resume: bool) -> Checkpoint | None:
    """The checkpoint to resume from, if any. An existing one is never overwritten by a new run."""
    if resume and path is None:
        raise BadOption("`resume` needs a `checkpoint` to resume from.")
    if path is None:
        return None
    remove_abandoned(path)
    if resume:
        if not path.exists():
            raise BadOption(f"There is no checkpoint {path}; leave out `resume` to start a new run.")
        return load_checkpoint(path)
    if path.exists():
        raise BadOption(f"{path} is the checkpoint of another run; pass `resume` to continue it, or remove it.")
    refuse_existing(path, force=False)
    return None


def check_identity(
    found: Checkpoint, identity: Mapping[str, Any], source: Source, path: Path | None, changeable: Collection[str]
) -> None:
    """Refuse a checkpoint of another config; of the overrides, `changeable` ones may differ."""
    for name in {**found.identity, **identity}:
        before, now = found.identity.get(name), identity.get(name)
        if name == "overrides":
            before, now = _without(before, changeable), _without(now, changeable)
        if before != now:
            how = _difference(name, before, now, source)
            raise BadOption(f"{path} was started {how}; pass the same again, or remove it to start a new run.")


def _without(overrides: Any, names: Collection[str]) -> Any:
    if not isinstance(overrides, Mapping):
        return overrides
    return {name: value for name, value in overrides.items() if name not in names}


def _difference(name: str, before: Any, now: Any, source: Source) -> str:
    other = toggle_holdout(source) if name == "images" else None
    if other is not None and fingerprint(other) == before:
        return f"{'without' if has_holdout(source) else 'with'} `eval_every`, which holds out some training images"
    return f"with `{name}` = {_short(before)}, not {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
