"""Scoring: one short training run watches every patch, and every metric that it serves gives each of them a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.evidence import ONE_RUN
from condense_once.metrics.gathering import epochs_in_all, gather
from condense_once.progress import Progress

if TYPE_CHECKING:
    from condense_once.train.hardware import ComputeConfig


VERSIONS = ("torch", "by")


def one_run_metrics() -> list[str]:
    """The metrics that a single training run serves."""
    return [info.name for info in METRICS if info.needs <= ONE_RUN]


def score(
    data: CondensedSet,
    metrics: Sequence[str] | None = None,
    *,
    runs: int = 1,
    seed: int = 0,
    net: str | None = None,
    settings: MetricConfig | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> CondensedSet:
    """The same set with its scores by these metrics, or by all that one training run serves.

    Scores are the mean of `runs` runs, each from other weights. What is there already, made in the same way, is not made
    again. `seed` is of everything that is drawn; without `settings` those hold that the authors used for such a set.
    """
    if runs < 1:
        raise BadOption(f"Scores need at least one run, not {runs}.")
    names = list(dict.fromkeys(one_run_metrics() if metrics is None else metrics))
    chosen = replace(settings or MetricConfig.for_data(data), seed=seed)
    lacking = to_be_made(data, names, runs, net, chosen, compute)
    if not lacking:
        return data
    found = _mean_scores(data, list(lacking), runs, net, chosen, compute, progress)
    provenance = _with_records(data.provenance, lacking)
    # an order by scores that are no longer there is none
    ranking = None if data.ranking is not None and data.ranking.metric in lacking else data.ranking
    return replace(data, scores={**data.scores, **found}, ranking=ranking, provenance=provenance)


def to_be_made(
    data: CondensedSet,
    names: Sequence[str],
    runs: int,
    net: str | None,
    settings: MetricConfig,
    compute: ComputeConfig | None,
) -> dict[str, dict[str, Any]]:
    """Those of the metrics by which a set has no scores that were made in this way, and the way."""
    records = {name: how_made(data, name, runs, net, settings) for name in names}
    records = {name: {**record, **_rounding(record, compute)} for name, record in records.items()}
    return {name: record for name, record in records.items() if not _is_made(data, name, record)}


def how_scored(data: CondensedSet, metric: str) -> Mapping[str, Any] | None:
    """How a set says that its scores by a metric were made, if it has them and says so."""
    for group in _groups(data.provenance):
        if metric in group["metrics"] and metric in data.scores:
            return {key: value for key, value in group.items() if key != "metrics"}
    return None


def _mean_scores(
    data: CondensedSet,
    names: list[str],
    runs: int,
    net: str | None,
    settings: MetricConfig,
    compute: ComputeConfig | None,
    progress: Progress | None,
) -> dict[str, NDArray[np.float32]]:
    epochs = epochs_in_all(names, settings)
    totals = {name: np.zeros(len(data)) for name in names}  # in double precision, so that equal means stay equal
    for run in range(runs):

        def tick(done: int, _total: int, before: int = run * epochs) -> None:
            if progress is not None:
                progress(before + done, runs * epochs)

        evidence = gather(data, names, settings, net=net, seed=settings.seed + run, compute=compute, progress=tick)
        for name in names:
            totals[name] += METRICS.get(name).score(evidence, settings)
    return {name: (total / runs).astype(np.float32) for name, total in totals.items()}


def how_made(data: CondensedSet, metric: str, runs: int, net: str | None, settings: MetricConfig) -> dict[str, Any]:
    """All that decides the scores of a set by a metric but for rounding, as plain JSON."""
    info = METRICS.get(metric)
    if not info.needs:
        return {"patches": len(data), "seed": settings.seed}
    from condense_once.nets import default_net  # late: it needs torch

    return {"patches": len(data), "runs": runs, "net": net or default_net(data.shape), **info.made_with(settings)}


def made_by(made: Mapping[str, Any]) -> dict[str, str]:
    """What made something in this way: it is told, but two versions are taken to do the same."""
    from condense_once._version import __version__

    by = {"by": f"condense-once {__version__}"}
    if "net" not in made:
        return by
    import torch

    return {**by, "torch": torch.__version__}


def _rounding(made: Mapping[str, Any], compute: ComputeConfig | None) -> dict[str, str]:
    """In which precision a network is trained for scores, if one is."""
    if "net" not in made:
        return {}
    from condense_once.train.hardware import ComputeConfig

    return {"precision": (compute or ComputeConfig()).computed_in}


def _is_made(data: CondensedSet, metric: str, record: Mapping[str, Any]) -> bool:
    said = how_scored(data, metric)
    return said is not None and {key: value for key, value in said.items() if key not in VERSIONS} == record


def _with_records(provenance: Mapping[str, Any], made: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Metrics that were made alike share a record."""
    groups = [{**group, "metrics": [m for m in group["metrics"] if m not in made]} for group in _groups(provenance)]
    for metric, record in made.items():
        full = {**record, **made_by(record)}
        like = next((group for group in groups if {**group, "metrics": []} == {**full, "metrics": []}), None)
        if like is None:
            like = {**full, "metrics": []}
            groups.append(like)
        like["metrics"].append(metric)
    return {**provenance, "scores": [group for group in groups if group["metrics"]]}


def _groups(provenance: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records that are what they should be; a stranger's file may say anything."""
    said = provenance.get("scores")
    return [group for group in said if _is_group(group)] if isinstance(said, list) else []


def _is_group(group: Any) -> bool:
    metrics = group.get("metrics") if isinstance(group, dict) else None
    return isinstance(metrics, list) and all(isinstance(metric, str) for metric in metrics)
