"""ScoringRun as bytes, for the store and for other machines."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from condense_once.metrics import ScoringRun, SubsetRuns, UntrainedNetworks
from condense_once.train.dynamics import ARRAYS, Dynamics


def pack(run: ScoringRun) -> bytes:
    """ScoringRun as the bytes of an npz archive."""
    arrays: dict[str, Any] = {"labels": run.labels, "rounding": np.array(json.dumps(dict(run.rounding)))}
    for name in ("dynamics", "clean_dynamics"):
        dynamics: Dynamics | None = getattr(run, name)
        if dynamics is not None:
            for what in ARRAYS:
                arrays[f"{name}.{what}"] = getattr(dynamics, what)
            arrays[f"{name}.settings"] = np.array(json.dumps(dict(dynamics.settings)))
    for name in ("probabilities", "features"):
        if getattr(run, name) is not None:
            arrays[name] = getattr(run, name)
    if run.subset_runs is not None:
        arrays.update({f"subset_runs.{name}": value for name, value in asdict(run.subset_runs).items()})
    if run.untrained is not None:
        arrays.update({f"untrained.{name}": value for name, value in asdict(run.untrained).items()})
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def unpack(content: bytes) -> ScoringRun:
    """The inverse of `pack`; loads no pickles."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}

    def dynamics(name: str) -> Dynamics | None:
        if f"{name}.error" not in arrays:
            return None
        parts = {what: arrays[f"{name}.{what}"] for what in ARRAYS}
        return Dynamics(**parts, settings=json.loads(str(arrays[f"{name}.settings"])))

    subsets = None
    if "subset_runs.included" in arrays:
        subsets = SubsetRuns(arrays["subset_runs.included"], arrays["subset_runs.probability"])
    untrained = None
    if "untrained.error" in arrays:
        untrained = UntrainedNetworks(arrays["untrained.error"], arrays["untrained.gradient"])
    return ScoringRun(
        labels=arrays["labels"],
        dynamics=dynamics("dynamics"),
        clean_dynamics=dynamics("clean_dynamics"),
        probabilities=arrays.get("probabilities"),
        features=arrays.get("features"),
        subset_runs=subsets,
        untrained=untrained,
        rounding=json.loads(str(arrays["rounding"])) if "rounding" in arrays else {},
    )
