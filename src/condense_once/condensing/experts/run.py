"""One expert being trained: batch after batch, with a snapshot of its weights after every few epochs."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from filelock import BaseFileLock, FileLock
from torch import nn

from condense_once.condensing.experts.config import ExpertConfig
from condense_once.condensing.experts.trajectory import Trajectory, load_trajectory, snapshot
from condense_once.data.source import Source
from condense_once.errors import BadFile, BadOption, InaccessibleFile
from condense_once.train.batches import ShuffledBatches
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import TrainingData
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import StepTrainer

ONE_PROCESS = "Experts are trained in parallel, one per core,"
SAVE_EVERY = 60.0  # seconds between two writes of an unfinished run, at the end of an epoch


class ExpertRun:
    """Training of one run; `advance` is one batch. Every sample is a function of seed, run and batch: no random state."""

    def __init__(
        self,
        source: Source,
        data: TrainingData,
        config: ExpertConfig,
        run: int,
        folder: Path,
        compute: ComputeConfig,
        *,
        writes: bool = True,
    ) -> None:
        """`data` are the training images of `source`; a process that does not write leaves the file to another."""
        self._source, self._data, self._config, self._run, self._folder = source, data, config, run, folder
        self._compute, self._writes = compute, writes
        self._batches = ShuffledBatches(np.arange(len(data)), config.recipe.batch, config.seed, Stream.EXPERT, run)
        self._per_epoch = config.batches or self._batches.per_epoch
        self._step, self._saved_at = 0, time.perf_counter()

    @cached_property
    def _trainer(self) -> StepTrainer:
        passes = self._config.recipe.epochs * (self._config.batches * self._config.recipe.batch or len(self._data))
        return StepTrainer(self._config.net, self._data.spec, self._config.recipe, passes=passes, compute=self._compute)

    @property
    def net(self) -> nn.Module:
        net: nn.Module = self._trainer.net
        return net

    @property
    def lock(self) -> BaseFileLock:
        """For one process at a time to train this run."""
        _make_folder(self._folder)
        return FileLock(run_path(self._folder, self._run).with_suffix(".lock"))

    @property
    def batches(self) -> int:
        """Batches of the whole run."""
        return self._config.recipe.epochs * self._per_epoch

    @property
    def done(self) -> int:
        """Batches done."""
        return self.trajectory.epochs * self._per_epoch + self._step

    @property
    def missing(self) -> int:
        """Batches that are not on disk."""
        found = find_run(self._source, self._config, self._folder, self._run)
        return self.batches - (0 if found is None else found.epochs * self._per_epoch)

    @property
    def is_finished(self) -> bool:
        return self.trajectory.epochs >= self._config.recipe.epochs

    def restore(self) -> None:
        """Continue from the end of the last saved epoch, or start."""
        found = find_run(self._source, self._config, self._folder, self._run)
        if found is None:
            self.start()
            return
        if found.epochs < self._config.recipe.epochs:
            self._trainer.restore(found.state)
        self.trajectory, self._step = found, 0

    def start(self) -> None:
        """Start from random weights, whatever is on disk."""
        config, trainer, self._step = self._config, self._trainer, 0
        trainer.reinitialise(generator(config.seed, Stream.EXPERT, self._run, Stream.WEIGHTS))
        identity = config.identity(self._source)
        self.trajectory = Trajectory(identity, self._run, 0, 0.0, snapshot(trainer.net), trainer.state())

    def advance(self) -> None:
        """Train on the next batch; at the end of an epoch, take a snapshot and save what there is."""
        start, recipe, epoch = time.perf_counter(), self._config.recipe, self.trajectory.epochs
        number = epoch * self._per_epoch + self._step
        rows, device = torch.from_numpy(self._batches[number]), self._trainer.device
        sampling = generator(self._config.seed, Stream.EXPERT, self._run, Stream.BATCHES, number)
        lr = recipe.lr_at(epoch, self._step, self._per_epoch)
        self._trainer.update(self._data.images[rows].to(device), self._data.labels[rows].to(device), sampling, lr=lr)
        self._step += 1
        seconds = self.trajectory.seconds + time.perf_counter() - start
        self.trajectory = replace(self.trajectory, seconds=seconds)
        if self._step == self._per_epoch:
            self._end_epoch(epoch + 1)

    def _end_epoch(self, epochs: int) -> None:
        found, self._step = self.trajectory, 0
        weights, last = found.weights, epochs == self._config.recipe.epochs
        if epochs % self._config.every == 0:
            more = snapshot(self._trainer.net)
            weights = {name: np.concatenate([values, more[name]]) for name, values in weights.items()}
            _refuse_divergence(more, epochs)
        state = {} if last else self._trainer.state()
        self.trajectory = replace(found, epochs=epochs, weights=weights, state=state)
        if self._writes and (last or time.perf_counter() - self._saved_at > SAVE_EVERY):
            _make_folder(self._folder)
            self.trajectory.save(run_path(self._folder, self._run))
            self._saved_at = time.perf_counter()


def find_run(source: Source, config: ExpertConfig, folder: Path, run: int) -> Trajectory | None:
    """A run that exists, finished or not; one that is damaged or belongs to another config counts as missing."""
    try:
        found = load_trajectory(run_path(folder, run))
    except (BadFile, OSError):
        return None
    return found if found.identity == config.identity(source) and found.run == run else None


def run_path(folder: Path, run: int) -> Path:
    return folder / f"run-{run}.safetensors"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InaccessibleFile(f"{folder} cannot be created ({error.strerror}); choose another `folder`.") from None


def _refuse_divergence(weights: dict[str, np.ndarray], epochs: int) -> None:
    if not all(np.isfinite(values).all() for values in weights.values() if values.dtype.kind == "f"):
        raise BadOption(
            f"The expert diverged in epoch {epochs}: its weights are infinite; train it with a smaller `lr`."
        )
