"""How the scores of a set were made, as recorded in its provenance: scores made in the same way are reused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from condense_once.condensed.set import CondensedSet
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.registry import METRICS
from condense_once.nets.defaults import default_net
from condense_once.train.compute_config import ComputeConfig

if TYPE_CHECKING:
    from condense_once.nets import NetChoice

# Recorded, but scores by other versions, threads or kernels are taken for the same: they differ by rounding alone.
UNCOMPARED = ("torch", "by", "threads", "native", "stopped_at")


def scoring_record(
    data: CondensedSet, metric: str, runs: int, net: NetChoice | None, config: MetricConfig
) -> dict[str, Any]:
    """All that decides the scores of a set by a metric, except rounding, as plain JSON."""
    info = METRICS.get(metric)
    if not info.needs:
        made = {"params": info.parameters(config)} if info.params else {}
        return {"patches": len(data), "seed": config.seed, **made}
    network = net or default_net(data.shape)
    if not isinstance(network, str):
        from condense_once.nets import net_name  # late: it needs torch

        network = net_name(network)
    soft = {"labels": "soft"} if data.soft_labels is not None and config.labels == "soft" else {}
    return {"patches": len(data), "runs": runs, "net": network, **info.made_with(config), **soft}


def stored_record(data: CondensedSet, metric: str) -> Mapping[str, Any] | None:
    """How the scores of a set by a metric were made, if it has them and records it."""
    for group in _groups(data.provenance):
        if metric in group["metrics"] and metric in data.scores:
            return {key: value for key, value in group.items() if key != "metrics"}
    return None


def missing_scores(
    data: CondensedSet,
    metrics: Sequence[str],
    runs: int,
    net: NetChoice | None,
    config: MetricConfig,
    compute: ComputeConfig | None,
) -> dict[str, dict[str, Any]]:
    """The records of those metrics by which a set has no scores made in this way.

    Unless `compute` names a precision, scores in any will do. The name of a network factory does not identify it, so scores
    by one are never reused.
    """
    compute = compute or ComputeConfig()
    own_net = net is not None and not isinstance(net, str)
    missing = {}
    for name in metrics:
        record = scoring_record(data, name, runs, net, config)
        trained = "net" in record
        named = {"precision": compute.precision} if trained and compute.precision != "auto" else {}
        if (own_net and trained) or not _is_stored(data, name, {**record, **named}):
            missing[name] = {**record, **({"precision": compute.computed_in} if trained else {})}
    return missing


def differences(data: CondensedSet, missing: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """How the stored scores of a set differ from those wanted, and the metrics that differ so.

    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from condense_once import load
    >>> data = load("cifar10-real-ipc10", first=2)
    >>> provenance = {"scores": [{"metrics": ["el2n"], "seed": 0, "runs": 1}]}
    >>> data = replace(data, scores={"el2n": np.zeros(2, np.float32)}, provenance=provenance)
    >>> differences(data, {"el2n": {"seed": 3, "runs": 1}, "aum": {"seed": 3}})
    {'seed 0, not 3': ['el2n']}
    """
    found: dict[str, list[str]] = {}
    for metric, record in missing.items():
        if stored := stored_record(data, metric):
            ways = (
                f"{key} {stored.get(key)}, not {value}" for key, value in record.items() if stored.get(key) != value
            )
            found.setdefault(", ".join(ways), []).append(metric)
    return found


def reused_scores(before: CondensedSet, after: CondensedSet, metrics: Sequence[str]) -> list[str]:
    """The metrics whose recorded scores are the same before and after scoring."""
    return [
        name for name in metrics if (record := stored_record(before, name)) and record == stored_record(after, name)
    ]


def made_by(record: Mapping[str, Any], rounding: Mapping[str, Any]) -> dict[str, Any]:
    """What else is recorded of scores, or features, with this record: versions, and the `rounding` of their scoring run."""
    from condense_once._version import __version__

    by = {"by": f"condense-once {__version__}"}
    if "net" not in record:
        return by
    import torch

    return {**by, "torch": torch.__version__, **rounding}


def with_records(
    provenance: Mapping[str, Any], made: Mapping[str, Mapping[str, Any]], rounding: Mapping[str, Any]
) -> dict[str, Any]:
    """A provenance with the records of new scores; metrics made in the same way share one."""
    groups = [{**group, "metrics": [m for m in group["metrics"] if m not in made]} for group in _groups(provenance)]
    for metric, record in made.items():
        full = {**record, **made_by(record, rounding)}
        same = next((group for group in groups if {**group, "metrics": []} == {**full, "metrics": []}), None)
        if same is None:
            same = {**full, "metrics": []}
            groups.append(same)
        same["metrics"].append(metric)
    return {**provenance, "scores": [group for group in groups if group["metrics"]]}


def _is_stored(data: CondensedSet, metric: str, record: Mapping[str, Any]) -> bool:
    stored = stored_record(data, metric)
    if stored is None:
        return False
    ignored = UNCOMPARED if "precision" in record else (*UNCOMPARED, "precision")
    return {key: value for key, value in stored.items() if key not in ignored} == record


def _groups(provenance: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The valid records; a foreign file may contain anything."""
    groups = provenance.get("scores")
    return [group for group in groups if _is_group(group)] if isinstance(groups, list) else []


def _is_group(group: Any) -> bool:
    metrics = group.get("metrics") if isinstance(group, dict) else None
    return isinstance(metrics, list) and all(isinstance(metric, str) for metric in metrics)
