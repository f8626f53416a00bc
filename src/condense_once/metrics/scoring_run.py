"""The scoring run: train once on all patches and record what the metrics need.

It is no longer than the metrics need it to be. Only memorization needs more runs, on subsets of the patches; scores before
training need none, but the outputs of some untrained networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.metrics.checks import check_labels
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.registry import METRICS, Need
from condense_once.progress import Progress
from condense_once.text import plural
from condense_once.train.seeds import Stream, generator, numpy_generator

if TYPE_CHECKING:  # they need torch, metrics do not
    from torch import nn

    from condense_once.metrics.stability import StableRanking
    from condense_once.nets import NetChoice
    from condense_once.train.compute_config import ComputeConfig
    from condense_once.train.dynamics import Dynamics
    from condense_once.train.images import Images, TrainingData
    from condense_once.train.recipe import Recipe

DEFAULT_PARTS: frozenset[Need] = frozenset({"dynamics", "probabilities", "features"})  # any run yields them at no cost
SINGLE_RUN_PARTS: frozenset[Need] = DEFAULT_PARTS | {"clean_dynamics"}
UNTRAINED = 10  # networks, as in Paul et al.
BATCH = 100  # as in evaluation: activations of larger batches do not stay in the caches


@dataclass(frozen=True)
class SubsetRuns:
    """R training runs, each on a random subset of the patches, evaluated on all of them."""

    included: NDArray[np.bool_]  # [R, N] whether the run was trained on the patch
    probability: NDArray[np.float32]  # [R, N] p of the label


@dataclass(frozen=True)
class UntrainedNetworks:
    """Outputs of R networks at initialisation, in evaluation mode."""

    error: NDArray[np.float32]  # [R, N] ‖p − y‖₂
    gradient: NDArray[np.float32]  # [R, N] norm of the gradient of the last layer


@dataclass(frozen=True)
class ScoringRun:
    """What one training run recorded of every patch, as far as the metrics need it.

    >>> ScoringRun(np.array([0, 1]), features=np.eye(2)).parts
    frozenset({'features'})
    """

    labels: NDArray[np.int64]  # [N]
    dynamics: Dynamics | None = None  # from the training passes
    clean_dynamics: Dynamics | None = None  # from a pass in evaluation mode after every epoch
    probabilities: NDArray[np.float32] | None = None  # [N, C] of the trained network, in evaluation mode
    features: NDArray[np.float32] | None = None  # [N, d] its penultimate features
    subset_runs: SubsetRuns | None = None
    untrained: UntrainedNetworks | None = None
    rounding: Mapping[str, Any] = field(default_factory=dict)  # threads, and whether native kernels computed it

    def __post_init__(self) -> None:
        check_labels(self.labels, len(self.labels))
        for need, array in self._arrays().items():
            patches = array.shape[0 if need in ("probabilities", "features") else 1] if array.ndim == 2 else None
            if patches != len(self):
                raise BadOption(f"The {need} have shape {list(array.shape)}, which does not fit {len(self)} labels.")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def parts(self) -> frozenset[Need]:
        return frozenset(self._arrays())

    def _arrays(self) -> dict[Need, NDArray[Any]]:
        """One array of each part that was recorded."""
        arrays: dict[Need, NDArray[Any] | None] = {
            "dynamics": None if self.dynamics is None else self.dynamics.error,
            "clean_dynamics": None if self.clean_dynamics is None else self.clean_dynamics.error,
            "probabilities": self.probabilities,
            "features": self.features,
            "subset_runs": None if self.subset_runs is None else self.subset_runs.probability,
            "untrained": None if self.untrained is None else self.untrained.error,
        }
        return {need: array for need, array in arrays.items() if array is not None}


def epochs_needed(metrics: Iterable[str], config: MetricConfig) -> int:
    """Length of the one run that serves all these metrics; 0 if none of them needs it.

    >>> epochs_needed(["random", "el2n"], MetricConfig()), epochs_needed(["el2n", "aum"], MetricConfig(scoring_epochs=30))
    (10, 30)
    """
    chosen = [METRICS.get(name) for name in metrics]
    return max((info.epochs_needed(config) for info in chosen if info.needs & SINGLE_RUN_PARTS), default=0)


def total_epochs(metrics: Iterable[str], config: MetricConfig) -> int:
    """How many epochs `record_scoring_run` trains, including the runs on subsets.

    >>> total_epochs(["lbpe", "memorization"], MetricConfig(subset_runs=5, subset_epochs=20))
    200
    """
    chosen = list(metrics)
    subsets = any("subset_runs" in METRICS.get(name).needs for name in chosen)
    return epochs_needed(chosen, config) + subsets * config.subset_runs * config.subset_epochs


def record_scoring_run(
    data: CondensedSet | Source | TrainingData,
    metrics: Iterable[str],
    config: MetricConfig,
    *,
    net: NetChoice | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
    folder: Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> ScoringRun:
    """Train on the patches of a set, the train split of a source, or other images, and record what these metrics need.

    As the authors do, dynamics are recorded in the training pass itself: augmented and possibly mixed inputs, weights before the
    update. With `folder` they are files there, not in memory. `progress` counts epochs. The config says which labels of a set
    are trained on, if it has soft ones.
    """
    names = list(metrics)
    needs = frozenset[Need]().union(*(METRICS.get(name).needs for name in names))
    labels = np.asarray(data.train.labels if isinstance(data, Source) else data.labels)
    if not needs:
        return ScoringRun(labels)
    from condense_once.train.images import TrainingData, training_data  # late: not all metrics need torch

    prepared = data if isinstance(data, TrainingData) else training_data(data, labels=config.labels)
    epochs = epochs_needed(names, config)
    total, training = total_epochs(names, config), _Training(net, recipe, seed, compute)
    parts: dict[str, Any] = {}
    if needs & SINGLE_RUN_PARTS:
        tick = None if progress is None else lambda done, _: progress(done, total)
        stop = None
        if config.until_stable is not None:
            from condense_once.metrics.stability import (
                StableRanking,  # late: it needs the metrics, and they this module
            )

            stop = StableRanking(names, config)
        parts |= _train_and_record(prepared, needs, epochs, training, folder, tick, stop)
    if "subset_runs" in needs:
        tick = None if progress is None else lambda done, _: progress(epochs + done, total)
        parts = {**_subset_runs(prepared, config, training, tick), **parts}
    if "untrained" in needs:
        parts = {**_untrained(prepared, training), **parts}
    return ScoringRun(labels, **parts)


class _Training(NamedTuple):
    """How networks are trained for a scoring run."""

    net: NetChoice | None
    recipe: Recipe | None
    seed: int
    compute: ComputeConfig | None


def _train_and_record(
    data: TrainingData,
    needs: frozenset[Need],
    epochs: int,
    training: _Training,
    folder: Path | None,
    progress: Progress | None,
    stop: StableRanking | None = None,
) -> dict[str, Any]:
    """The parts of a single run, by their names in `ScoringRun`."""
    from condense_once.nets import default_net, net_name
    from condense_once.train.dynamics import Recorder, recipe_for, record_clean_pass
    from condense_once.train.trainer import Trainer

    recipe, net, seed = (
        training.recipe or recipe_for(data.shape),
        training.net or default_net(data.shape),
        training.seed,
    )
    if not 1 <= epochs <= recipe.epochs:
        raise BadOption(f"The recipe has {plural(recipe.epochs, 'epoch')}, so a scoring run cannot have {epochs}.")
    trainer = Trainer(net, data.spec, recipe, passes=epochs * len(data), compute=training.compute)
    outputs = needs & {"probabilities", "features"}
    if outputs and not isinstance(net, str):
        final_outputs(trainer.net, data.images[:1], outputs)  # before training: may have no penultimate features
    record = partial(Recorder, data.labels, epochs, folder, soft=data.soft, loss=data.loss)
    recorder, clean = record(), record(name="clean") if "clean_dynamics" in needs else None
    labels = data.labels.numpy()

    def after_epoch(done: int, total: int) -> None:
        if clean is not None:
            record_clean_pass(trainer, data.images, clean, done - 1)
        if progress is not None:
            progress(done, total)

    trainer.fit(
        data.images,
        data.targets,
        weights=generator(seed, Stream.SCORING_RUN, Stream.WEIGHTS),
        batches=generator(seed, Stream.SCORING_RUN, Stream.BATCHES),
        epochs=epochs,
        on_batch=recorder,
        progress=after_epoch,
        stop=None if stop is None else lambda done: stop(ScoringRun(labels, recorder.finish({}, done))),
    )
    epochs = recorder.epochs_recorded
    settings = {"net": net_name(net), "recipe": asdict(recipe), "epochs": epochs, "seed": seed, "set": data.name}
    parts: dict[str, Any] = {"dynamics": recorder.finish(settings, epochs), "rounding": trainer.rounding}
    if clean is not None:
        parts["clean_dynamics"] = clean.finish({**settings, "clean": True})
    if outputs:
        parts |= final_outputs(trainer.net, data.images, outputs, folder)
    return parts


def final_outputs(
    net: nn.Module, inputs: NDArray[Any] | Images, needs: frozenset[Need], folder: Path | None = None
) -> dict[str, NDArray[np.float32]]:
    """Probabilities `[N, C]`, penultimate features `[N, d]`, or both, of a trained network in evaluation mode.

    >>> import torch
    >>> from condense_once.nets import make_net
    >>> net = make_net("convnet-d3-w32", (3, 8, 8), 5, generator=torch.Generator().manual_seed(0))
    >>> outputs = final_outputs(net, np.zeros((7, 3, 8, 8), np.float32), frozenset({"probabilities", "features"}))
    >>> outputs["probabilities"].shape, outputs["features"].shape
    ((7, 5), (7, 32))
    """
    import torch

    from condense_once.nets import Network, penultimate
    from condense_once.train.memmap import new_array

    device = next(net.parameters()).device
    was_training = net.training
    net.eval()
    arrays: dict[str, NDArray[np.float32]] = {}
    with torch.inference_mode():
        for start in range(0, len(inputs), BATCH):
            x = torch.as_tensor(inputs[start : start + BATCH]).to(device)
            features = penultimate(net, x)
            logits = net.classifier(features) if isinstance(net, Network) else net(x)
            for name, values in (("probabilities", logits.float().softmax(1)), ("features", features.float())):
                if name not in needs:
                    continue
                if name not in arrays:
                    arrays[name] = new_array((len(inputs), values.shape[1]), np.float32, folder, name)
                arrays[name][start : start + BATCH] = values.cpu().numpy()
    net.train(was_training)
    return arrays


def _subset_runs(
    data: TrainingData, config: MetricConfig, training: _Training, progress: Progress | None
) -> dict[str, Any]:
    """The parts of the runs on subsets, by their names in `ScoringRun`."""
    from condense_once.train.subsets import sample_subsets, train_on_subsets

    # the seed of the run, not of the config: runs that are averaged must leave out different patches
    rng = numpy_generator(training.seed, Stream.SUBSET_RUNS)
    included = sample_subsets(len(data), config.subset_runs, config.subset_fraction, rng)
    epochs = config.subset_epochs
    probability, rounding = train_on_subsets(data, included, epochs=epochs, **training._asdict(), progress=progress)
    return {"subset_runs": SubsetRuns(included, probability), "rounding": rounding}


def _untrained(data: TrainingData, training: _Training) -> dict[str, Any]:
    """The outputs of untrained networks, by their names in `ScoringRun`."""
    from condense_once.metrics.grand import grand  # late: metrics are registered after this module is imported
    from condense_once.nets import default_net, initialise
    from condense_once.train.dynamics import recipe_for
    from condense_once.train.trainer import Trainer

    recipe, net = training.recipe or recipe_for(data.shape), training.net or default_net(data.shape)
    trainer = Trainer(net, data.spec, recipe, passes=UNTRAINED * len(data), compute=training.compute)
    labels = data.labels.numpy()
    targets = np.eye(data.spec.classes)[labels] if data.soft is None else data.soft.numpy()
    error, gradient = (np.empty((UNTRAINED, len(data)), np.float32) for _ in range(2))
    for number in range(UNTRAINED):
        initialise(trainer.net, generator(training.seed, Stream.UNTRAINED, number))
        outputs = final_outputs(trainer.net, data.images, frozenset({"probabilities", "features"}))
        error[number] = np.linalg.norm(outputs["probabilities"] - targets, axis=1)
        gradient[number] = grand(outputs["probabilities"], outputs["features"], labels)
    return {"untrained": UntrainedNetworks(error, gradient), "rounding": trainer.rounding}
