"""What the scoring network saw in each patch: its features, for the map, and its error in every epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.errors import UnknownName
from condense_once.explorer.same_patches import SamePatches
from condense_once.metrics import METRICS, MetricConfig, ScoringRun, record_scoring_run
from condense_once.metrics.scoring_run import DEFAULT_PARTS
from condense_once.progress import Progress
from condense_once.studies.scoring_run_io import unpack
from condense_once.studies.store import Store


@dataclass(frozen=True)
class SeenPatches:
    """Patches as a network sees them, in the order of the set."""

    features: NDArray[np.floating]  # [N, d]
    errors: NDArray[np.float32] | None  # [E, N] ‖p − y‖₂ in every epoch
    source: str  # what the features are, in a few words


def seen_by_stored_run(data: CondensedSet, same: SamePatches, store: Store) -> SeenPatches | None:
    """The features and errors of a scoring run in a store; the one that made the ranking comes first."""
    made_with = {name: settings(data).get(name) for name in ("net", "seed")}
    known = [(key, facts) for key, facts in store.facts("evidence") if facts.get("set") in same.rows]
    for key, facts in sorted(known, key=lambda run: [run[1].get(name) != value for name, value in made_with.items()]):
        content = store.scoring_bytes(key)
        if content is not None and (seen := _seen(unpack(content), str(facts.get("net")))) is not None:
            rows = same.rows[facts["set"]]
            errors = None if seen.errors is None else seen.errors[:, rows]
            return replace(seen, features=seen.features[rows], errors=errors)
    return None


def seen_by_new_run(data: CondensedSet, progress: Progress | None = None) -> SeenPatches:
    """Train once as for the ranking of the set: same network, same seed."""
    made, metrics = settings(data), [info.name for info in METRICS if info.needs <= DEFAULT_PARTS and info.needs]
    config = replace(MetricConfig.for_data(data), seed=int(made.get("seed", 0)))
    net = made.get("net")
    try:
        run = record_scoring_run(data, metrics, config, net=net, seed=config.seed, progress=progress)
    except UnknownName:  # of a network that was built by a function
        run = record_scoring_run(data, metrics, config, seed=config.seed, progress=progress)
    seen = _seen(run, str(net or "the default network"))
    assert seen is not None  # noqa: S101  # the metrics need features
    return seen


def seen_as_pixels(data: CondensedSet) -> SeenPatches:
    """Without any network: the pixels of the cells."""
    return SeenPatches(data.cells.reshape(len(data), -1).astype(np.float32), None, "pixels")


def settings(data: CondensedSet) -> Mapping[str, Any]:
    """How the scores of the ranking were made."""
    return {} if data.ranking is None else data.ranking.settings


def _seen(run: ScoringRun, net: str) -> SeenPatches | None:
    if run.features is None:
        return None
    errors = None if run.dynamics is None else np.asarray(run.dynamics.error, np.float32)
    return SeenPatches(run.features, errors, f"features of {net}")
