"""Scoring: one short training run records every patch, and each metric turns the record into one score per patch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.bundled import as_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import LabelUse, check_label_use
from condense_once.data.open import as_source
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, Epochs, MetricConfig, MetricInfo
from condense_once.metrics.config import Param, parse_params
from condense_once.metrics.score_records import missing_scores, with_records
from condense_once.metrics.scoring_run import SINGLE_RUN_PARTS, record_scoring_run, total_epochs
from condense_once.metrics.stability import check_stability
from condense_once.progress import Progress

if TYPE_CHECKING:
    from condense_once.nets import NetChoice
    from condense_once.train.compute_config import ComputeConfig
    from condense_once.train.recipe import Recipe


def single_run_metrics() -> list[str]:
    """The metrics that a single training run serves."""
    return [info.name for info in METRICS if info.needs <= SINGLE_RUN_PARTS]


def metric_names(metrics: str | MetricInfo | Iterable[str | MetricInfo]) -> list[str]:
    """The names of one or more metrics, each once, given by name or as entries of `METRICS`.

    >>> metric_names("el2n"), metric_names([METRICS.get("aum"), "el2n", "aum"])
    (['el2n'], ['aum', 'el2n'])
    """
    several = [metrics] if isinstance(metrics, str | MetricInfo) else metrics
    names = (METRICS.get(each.name if isinstance(each, MetricInfo) else each).name for each in several)
    return list(dict.fromkeys(names))


def score(
    data: CondensedSet | str | Path,
    metrics: str | MetricInfo | Iterable[str | MetricInfo] | None = None,
    *,
    runs: int = 1,
    seed: int | None = None,
    net: NetChoice | None = None,
    config: MetricConfig | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> CondensedSet:
    """The same set with scores by these metrics, by default by all that a single training run serves.

    Scores are averaged over `runs` runs with different weights. Stored scores made in the same way are reused. `seed`, by
    default that of the config, seeds everything that is sampled; the default `config` is the authors' for such a set.
    """
    if runs < 1:
        raise BadOption(f"`runs` must be at least 1, not {runs}.")
    data = as_set(data)
    names = single_run_metrics() if metrics is None else metric_names(metrics)
    config = _seeded(config or MetricConfig.for_data(data), seed)
    missing = missing_scores(data, names, runs, net, config, compute)
    if not missing:
        return data
    scores, rounding = _mean_scores(data, list(missing), runs, net, config, compute, progress)
    # an order by scores that are replaced no longer holds
    ranking = None if data.ranking is not None and data.ranking.metric in missing else data.ranking
    provenance = with_records(data.provenance, missing, rounding)
    return replace(data, scores={**data.scores, **scores}, ranking=ranking, provenance=provenance)


def score_source(
    source: Source | str | Path,
    metric: str | MetricInfo = "lbpe",
    *,
    net: NetChoice | None = None,
    recipe: Recipe | None = None,
    config: MetricConfig | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """One score per training image of a source, `[N]`: to prune a full dataset of any size.

    Images are read on demand and the dynamics, 13 bytes per image and epoch, are memory-mapped files: in `folder`, where they
    stay, or in a temporary directory. Metrics of dynamics need no more memory than a batch and a few numbers per image.

    >>> import condense_once
    >>> from condense_once.data.source import ArraySplit
    >>> images = np.random.default_rng(0).integers(0, 256, (30, 1, 8, 8), dtype=np.uint8)
    >>> source = Source("noise", ("a", "b"), (0.5,), (0.3,), {"train": ArraySplit(images, np.arange(30) % 2)})
    >>> short = MetricConfig(scoring_epochs=2, el2n_epochs=2)
    >>> condense_once.score_source(source, "el2n", net="convnet-d3-w32", config=short).shape
    (30,)
    """
    source, config = as_source(source), _seeded(config or MetricConfig(), seed)
    name = metric.name if isinstance(metric, MetricInfo) else metric
    info = METRICS.get(name)

    def score_in(place: Path) -> NDArray[np.float32]:
        """A function of its own, so that nothing refers to the files any more when they are removed."""
        run = record_scoring_run(
            source,
            [name],
            config,
            net=net,
            recipe=recipe,
            seed=config.seed,
            folder=place,
            compute=compute,
            progress=progress,
        )
        return info.score(run, config)

    if folder is not None:
        return score_in(Path(folder))
    with TemporaryDirectory(prefix="condense-once-") as place:
        return score_in(Path(place))


def _seeded(config: MetricConfig, seed: int | None) -> MetricConfig:
    return config if seed is None else replace(config, seed=seed)


def scoring_config(
    data: CondensedSet,
    metrics: Iterable[str],
    *,
    lbpe_epochs: Epochs | str | None = None,
    scoring_epochs: int | None = None,
    params: Mapping[str, Mapping[str, Param]] | Sequence[str] | None = None,
    labels: LabelUse | None = None,
    until_stable: float | None = None,
) -> MetricConfig:
    """What serves a set best, with these changes; a change that affects none of the metrics is refused.

    `lbpe_epochs` may be `paper`, the authors' choice for sets by this method. `params` are given by metric, or as texts for
    `parse_params`. `labels` are those to train on, by default soft ones if the set has any that are no
    vectors to regress on. With `until_stable`, lbpe averages over all epochs, because other averages do not settle.

    >>> from condense_once import load
    >>> scoring_config(load("cifar10-real-ipc10"), ["lbpe"], lbpe_epochs="0-149").scoring_epochs
    150
    """
    infos = [METRICS.get(name) for name in metrics]
    names = ", ".join(info.name for info in infos)
    if lbpe_epochs is not None and not any("lbpe_epochs" in info.depends for info in infos):
        raise BadOption(f"`lbpe_epochs` applies to lbpe and its variants, not to {names}; leave it out.")
    given = params if isinstance(params, Mapping) else parse_params(params or ())
    if unused := [name for name in given if name not in {info.name for info in infos}]:
        raise BadOption(
            f"There are parameters for the metric {unused[0]!r}, but the scores are by {names}; leave them out."
        )
    if until_stable is not None and lbpe_epochs is None:
        lbpe_epochs = Epochs.all()
    if lbpe_epochs == "paper":
        lbpe_epochs = MetricConfig.for_data(data, paper=True).lbpe_epochs
    epochs = Epochs.parse(lbpe_epochs) if isinstance(lbpe_epochs, str) else lbpe_epochs
    config = MetricConfig.for_data(data).with_epochs(epochs, scoring_epochs)
    config = replace(config, params=given, labels=check_label_use(labels, data), until_stable=until_stable)
    if until_stable is not None:
        check_stability(infos, config)
    for info in infos:
        info.parameters(config)  # refuses unknown ones
    return config


def summarise_scores(data: CondensedSet, metrics: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Minimum, median and maximum of the scores of a set by each metric, and which end is easy."""
    return {
        name: {
            "easy": METRICS.get(name).easy,
            "min": float(v.min()),
            "median": float(np.median(v)),
            "max": float(v.max()),
        }
        for name in metrics
        for v in (data.scores[name],)
    }


def _mean_scores(
    data: CondensedSet,
    metrics: list[str],
    runs: int,
    net: NetChoice | None,
    config: MetricConfig,
    compute: ComputeConfig | None,
    progress: Progress | None,
) -> tuple[dict[str, NDArray[np.float32]], Mapping[str, Any]]:
    """The scores by each metric, what decided their rounding and, if runs end by themselves, after how many epochs they did."""
    epochs = total_epochs(metrics, config)
    stopped: list[int] = []
    totals = {name: np.zeros(len(data)) for name in metrics}  # in double precision, so that equal means stay equal
    for number in range(runs):

        def after_epoch(done: int, _total: int, before: int = number * epochs) -> None:
            if progress is not None:
                progress(before + done, runs * epochs)

        seed = config.seed + number
        run = record_scoring_run(data, metrics, config, net=net, seed=seed, compute=compute, progress=after_epoch)
        if run.dynamics is not None:
            stopped.append(run.dynamics.epochs)
        for name in metrics:
            totals[name] += METRICS.get(name).score(run, config)
    rounding = run.rounding if config.until_stable is None else {**run.rounding, "stopped_at": stopped}
    return {name: (total / runs).astype(np.float32) for name, total in totals.items()}, rounding
