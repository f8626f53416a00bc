"""Gathering evidence: one training run for all the metrics that are asked for, no longer than they need.

Only memorization needs more: several runs on parts of the patches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.evidence import ONE_RUN, Evidence, SubsetRuns
from condense_once.metrics.final import final_outputs
from condense_once.metrics.registry import METRICS, epochs_needed
from condense_once.train.seeds import Stream, numpy_generator

if TYPE_CHECKING:
    from condense_once.nets import NetChoice
    from condense_once.progress import Progress
    from condense_once.train.hardware import ComputeConfig
    from condense_once.train.images import TrainingData
    from condense_once.train.recipe import Recipe


def gather(
    data: CondensedSet | Source | TrainingData,
    names: Iterable[str],
    settings: MetricConfig,
    *,
    net: NetChoice | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
    folder: Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> Evidence:
    """What the metrics of these names need to know of the patches of a set, of the train split of a source, or of other images.

    With `folder`, what is recorded is kept in files there instead of in memory. `progress` hears the epochs done in all
    trainings, of `epochs_in_all`.
    """
    chosen = list(names)
    needs = frozenset[str]().union(*(METRICS.get(name).needs for name in chosen))
    labels = np.asarray(data.train.labels if isinstance(data, Source) else data.labels)
    if not needs:
        return Evidence(labels)
    from condense_once.train.dynamics import record_run  # late: not all metrics need torch
    from condense_once.train.images import TrainingData, training_data

    prepared = data if isinstance(data, TrainingData) else training_data(data)
    epochs, total = epochs_needed(chosen, settings), epochs_in_all(chosen, settings)
    training = clean = probabilities = features = subset_runs = None
    if needs & ONE_RUN:
        run = record_run(
            prepared,
            epochs=epochs,
            net=net,
            recipe=recipe,
            seed=seed,
            clean="clean dynamics" in needs,
            folder=folder,
            compute=compute,
            progress=None if progress is None else lambda done, _: progress(done, total),
        )
        training, clean = run.training, run.clean
        if needs & {"probabilities", "features"}:
            last = final_outputs(run.trainer.net, run.inputs, needs, folder)
            probabilities, features = last.get("probabilities"), last.get("features")
    if "subset runs" in needs:
        after = None if progress is None else lambda done, _: progress(epochs + done, total)
        subset_runs = _subset_runs(prepared, settings, net, recipe, seed, compute, after)
    return Evidence(labels, training, clean, probabilities, features, subset_runs)


def epochs_in_all(names: Iterable[str], settings: MetricConfig) -> int:
    """How many epochs `gather` trains for metrics of these names, in all runs together.

    >>> epochs_in_all(["lbpe", "memorization"], MetricConfig(subset_runs=5, subset_epochs=20))
    200
    """
    chosen = list(names)
    subsets = any("subset runs" in METRICS.get(name).needs for name in chosen)
    return epochs_needed(chosen, settings) + subsets * settings.subset_runs * settings.subset_epochs


def score_source(
    source: Source,
    metric: str = "lbpe",
    *,
    net: NetChoice | None = None,
    recipe: Recipe | None = None,
    settings: MetricConfig | None = None,
    seed: int = 0,
    folder: Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """One number for each training image of a source, `[N]`: to prune a full dataset, of any size.

    Images are read as they are needed, and what is recorded of them, 13 bytes an image and epoch, is kept in files: in
    `folder`, where they stay, or among the system's temporary files, where they do not. What the metrics of dynamics
    need in memory is a batch, and a few numbers an image.

    >>> import condense_once
    >>> from condense_once.data.source import ArraySplit
    >>> images = np.random.default_rng(0).integers(0, 256, (30, 1, 8, 8), dtype=np.uint8)
    >>> source = Source("noise", ("a", "b"), (0.5,), (0.3,), {"train": ArraySplit(images, np.arange(30) % 2)})
    >>> brief = MetricConfig(training=2, el2n=2)
    >>> condense_once.score_source(source, "el2n", net="convnet-d3-w32", settings=brief).shape
    (30,)
    """
    settings = replace(settings or MetricConfig(), seed=seed)
    info = METRICS.get(metric)

    def score(place: Path) -> NDArray[np.float32]:
        """Apart, so that nothing holds the files any more when they are removed."""
        evidence = gather(
            source,
            [metric],
            settings,
            net=net,
            recipe=recipe,
            seed=seed,
            folder=place,
            compute=compute,
            progress=progress,
        )
        return info.score(evidence, settings)

    if folder is not None:
        return score(folder)
    with TemporaryDirectory(prefix="condense-once-") as place:
        return score(Path(place))


def _subset_runs(
    data: TrainingData,
    settings: MetricConfig,
    net: NetChoice | None,
    recipe: Recipe | None,
    seed: int,
    compute: ComputeConfig | None,
    progress: Progress | None,
) -> SubsetRuns:
    from condense_once.train.subsets import draw_subsets, run_subsets

    # of the run, not of the settings: several runs are averaged, and each must leave out others
    rng = numpy_generator(seed, Stream.SUBSET_RUNS)
    included = draw_subsets(len(data), settings.subset_runs, settings.subset_share, rng)
    probability = run_subsets(
        data,
        included,
        epochs=settings.subset_epochs,
        net=net,
        recipe=recipe,
        seed=seed,
        compute=compute,
        progress=progress,
    )
    return SubsetRuns(included, probability)
