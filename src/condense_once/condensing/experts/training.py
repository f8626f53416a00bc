"""Train expert networks on real images and keep their weights along the way, reusing and resuming what exists."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import nn

from condense_once.condensing.experts.config import TGDD_EXPERTS, ExpertConfig
from condense_once.condensing.experts.trajectory import Trajectory, load_trajectory, snapshot
from condense_once.data.open import as_source
from condense_once.data.source import Source
from condense_once.errors import BadFile, BadOption, InaccessibleFile
from condense_once.nets import NetChoice, default_net
from condense_once.progress import Progress
from condense_once.train.batches import ShuffledBatches
from condense_once.train.hardware import ComputeConfig
from condense_once.train.images import TrainingData, training_data
from condense_once.train.parallel import Check, EpochCounter, run_in_parallel
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import StepTrainer

SAVE_EVERY = 60.0  # seconds between two writes of an unfinished run, at the end of an epoch


@dataclass(frozen=True)
class Experts:
    """Trained networks with their weights along the way."""

    config: ExpertConfig
    folder: Path
    runs: Sequence[Trajectory]

    @property
    def snapshots(self) -> int:
        """Snapshots of each run."""
        return self.config.snapshots

    def load_into(self, net: nn.Module, run: int, snapshot: int) -> None:
        """Set the weights of `net`, which must be of the experts' kind."""
        self.runs[run].load_into(net, snapshot)


def train_experts(
    source: Source | str | Path,
    *,
    net: NetChoice | None = None,
    runs: int = 1,
    epochs: int | None = None,
    recipe: Recipe | None = None,
    every: int = 1,
    seed: int = 0,
    folder: str | Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> Experts:
    """Train `runs` networks on the train split of `source`, with a snapshot of the weights after `every` epochs.

    Runs that exist in `folder` are reused, unfinished ones continue to the same bits. By default the folder is `experts` in the
    folder of downloaded datasets, and the recipe is TGDD's, with `epochs` instead of its 60. `progress` counts the epochs of
    all runs.
    """
    images, recipe = as_source(source), recipe or TGDD_EXPERTS
    config = ExpertConfig(
        net=net or default_net(images.train.shape),
        recipe=recipe if epochs is None else replace(recipe, epochs=epochs),
        every=every,
        seed=seed,
    )
    root = None if folder is None else Path(folder)
    return make_experts(images, config, runs=runs, root=root, compute=compute, progress=progress)


def make_experts(
    source: Source,
    config: ExpertConfig,
    *,
    runs: int,
    root: Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> Experts:
    """As `train_experts`, from a config."""
    if runs < 1:
        raise BadOption(f"`runs` must be at least 1, not {runs}.")
    compute, folder = compute or ComputeConfig(), config.folder(source, root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InaccessibleFile(f"{folder} cannot be created ({error.strerror}); choose another `folder`.") from None
    existing = {run: find_run(source, config, folder, run) for run in range(runs)}
    missing = [run for run, found in existing.items() if found is None or found.epochs < config.recipe.epochs]
    if missing:
        data = training_data(source)
        epochs = EpochCounter(len(missing) * config.recipe.epochs, progress)

        def work(places: Sequence[int], check: Check) -> list[Trajectory]:
            return [_train(source, data, config, folder, missing[place], compute, check, epochs) for place in places]

        made = run_in_parallel(len(missing), compute, work)
        existing.update(zip(missing, made, strict=True))
    return Experts(config, folder, [found for found in existing.values() if found is not None])


def find_run(source: Source, config: ExpertConfig, folder: Path, run: int) -> Trajectory | None:
    """A run that exists, finished or not; one that is damaged or belongs to another config counts as missing."""
    try:
        found = load_trajectory(run_path(folder, run))
    except (BadFile, OSError, LookupError):
        return None
    return found if found.identity == config.identity(source) and found.run == run else None


def run_path(folder: Path, run: int) -> Path:
    return folder / f"run-{run}.safetensors"


def _train(
    source: Source,
    data: TrainingData,
    config: ExpertConfig,
    folder: Path,
    run: int,
    compute: ComputeConfig,
    check: Check,
    counter: EpochCounter,
) -> Trajectory:
    """Train one run from where it is. Every sample is a function of seed, run and batch, so no random state is saved."""
    path, recipe = run_path(folder, run), config.recipe
    with FileLock(path.with_suffix(".lock")):  # another process may be training the same run
        found = find_run(source, config, folder, run)
        trainer = StepTrainer(config.net, data.spec, recipe, passes=recipe.epochs * len(data), compute=compute)
        if found is None:
            trainer.reinitialise(generator(config.seed, Stream.EXPERT, run, Stream.WEIGHTS))
            found = Trajectory(config.identity(source), run, 0, 0.0, snapshot(trainer.net), trainer.state())
        elif found.epochs < recipe.epochs:
            trainer.restore(found.state)
        batches = ShuffledBatches(np.arange(len(data)), recipe.batch, config.seed, Stream.EXPERT, run)
        started, before, saved = time.perf_counter(), found.seconds, time.perf_counter()
        counter.add(found.epochs)
        for epoch in range(found.epochs, recipe.epochs):
            for step in range(batches.per_epoch):
                check()
                number = epoch * batches.per_epoch + step
                rows = torch.from_numpy(batches[number])
                sampling = generator(config.seed, Stream.EXPERT, run, Stream.BATCHES, number)
                lr = recipe.lr_at(epoch, step, batches.per_epoch)
                x, y = data.images[rows].to(trainer.device), data.labels[rows].to(trainer.device)
                trainer.update(x, y, sampling, lr=lr)
            last = epoch + 1 == recipe.epochs
            weights = found.weights
            if (epoch + 1) % config.every == 0:
                more = snapshot(trainer.net)
                weights = {name: np.concatenate([values, more[name]]) for name, values in weights.items()}
            seconds = before + time.perf_counter() - started
            state = {} if last else trainer.state()
            found = replace(found, epochs=epoch + 1, seconds=round(seconds, 1), weights=weights, state=state)
            if last or time.perf_counter() - saved > SAVE_EVERY:
                _refuse_divergence(found, path)
                found.save(path)
                saved = time.perf_counter()
            counter.add()
    return found


def _refuse_divergence(found: Trajectory, path: Path) -> None:
    if not all(np.isfinite(values[-1]).all() for values in found.weights.values() if values.dtype.kind == "f"):
        raise BadOption(f"The expert of {path} diverged in epoch {found.epochs}; train it with a smaller `lr`.")
