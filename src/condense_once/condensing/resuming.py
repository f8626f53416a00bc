"""Going on from a checkpoint: whether there is one, whether it is of what is asked for, and the loop as it was left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from condense_once.condensing.checkpoint import Checkpoint, load_checkpoint
from condense_once.condensing.config import RATES, fingerprint
from condense_once.condensing.job import Job
from condense_once.condensing.matching.loop import MatchingLoop
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.data.source import Source
from condense_once.data.split import has_holdout, toggle_holdout
from condense_once.errors import BadFile, BadOption
from condense_once.files import refuse_existing


def find_checkpoint(path: Path | None, resume: bool, job: Job) -> Checkpoint | None:
    """The checkpoint that a job is to go on from, if it is to; nothing that is there is begun anew over."""
    if resume and path is None:
        raise BadOption("There is nothing to resume without a checkpoint.")
    if path is None:
        return None
    if not resume:
        if path.exists():
            raise BadOption(f"{path} is there from another run; pass --resume to go on from it, or remove it.")
        refuse_existing(path, force=False)
        return None
    if not path.exists():
        raise BadOption(f"There is no checkpoint {path} to go on from; leave --resume out to begin.")
    found = load_checkpoint(path)
    _refuse_another(found.request, job, path)
    return found


def recipe_of(found: Checkpoint, path: Path | None) -> MatchingRecipe:
    try:
        return MatchingRecipe(**found.recipe)
    except (TypeError, BadOption) as error:
        raise BadFile(f"{path} is damaged: its recipe makes no sense ({error}).") from None


def restore(loop: MatchingLoop, found: Checkpoint, path: Path | None) -> None:
    """Take the loop to where the checkpoint was saved or, with other rates, to the beginning of the network of that time."""
    try:
        if not 0 <= found.done <= loop.table.total:
            raise ValueError(f"{found.done} of {loop.table.total} ticks are done")
        loop.restore(found.arrays, found.done)
        if loop.recipe != recipe_of(found, path):  # a network taught at another rate may be lost: draw it anew
            loop.done -= loop.done % loop.table.per_iteration
    except BadFile:
        raise
    except (KeyError, RuntimeError, ValueError) as error:
        raise BadFile(f"{path} does not fit this run ({error}); remove it to begin anew.") from None


def _refuse_another(begun: Mapping[str, Any], job: Job, path: Path) -> None:
    """A checkpoint belongs to what was asked for when it was begun, but for the rates."""
    for name, value in job.described.items():
        before, now = (_but_for_rates(side) if name == "changes" else side for side in (begun.get(name), value))
        if before != now:
            how = _how_begun(name, before, now, job.problem.source)
            raise BadOption(f"{path} was begun {how}; ask for the same again, or remove it to begin anew.")


def _how_begun(name: str, before: Any, now: Any, source: Source) -> str:
    """In which way it was another run, in words."""
    other = toggle_holdout(source) if name == "images" else None
    if other is not None and fingerprint(other) == before:
        return f"{'without' if has_holdout(source) else 'with'} --eval-every, which holds some training images back"
    return f"with {name} = {_short(before)}, not {_short(now)}"


def _but_for_rates(changes: Any) -> Any:
    return {name: changes[name] for name in changes if name not in RATES} if isinstance(changes, Mapping) else changes


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
