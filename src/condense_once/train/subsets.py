"""Subset runs: training runs on random subsets of the patches, to compare patches that were included and left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.nets import NetChoice, default_net
from condense_once.progress import Progress
from condense_once.text import plural
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.dynamics import Recorder, recipe_for, record_clean_pass
from condense_once.train.images import ImageSubset, TrainingData
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import Trainer


def sample_subsets(patches: int, runs: int, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which patches each run is trained on, `[R, N]`.

    Every patch is left out of the same number of runs, about 1 − `fraction` of them, but at least one and not all; which ones
    is sampled independently for each patch.

    >>> sample_subsets(100, 10, 0.7, np.random.default_rng(0)).sum(0).tolist() == [7] * 100
    True
    """
    left_out = min(max(round((1 - fraction) * runs), 1), runs - 1)
    places: NDArray[np.int64] = rng.random((runs, patches)).argsort(axis=0)  # a permutation of the runs for each patch
    return places >= left_out


def train_on_subsets(
    data: TrainingData,
    included: NDArray[np.bool_],
    *,
    epochs: int,
    net: NetChoice | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """The probability of every patch's label, `[R, N]`, in evaluation mode after training on the patches `included` in each run.

    Also returns what decided the rounding. `progress` counts the epochs of all runs.
    """
    if included.sum(1).min() < 2:
        raise BadOption(f"{plural(len(data), 'patch')}: too few for {plural(len(included), 'run')} on subsets of them.")
    recipe = recipe or recipe_for(data.shape)
    if not 1 <= epochs <= recipe.epochs:
        raise BadOption(f"The recipe has {plural(recipe.epochs, 'epoch')}, so subset runs cannot have {epochs}.")
    passes = epochs * int(included.sum())
    trainer = Trainer(net or default_net(data.shape), data.spec, recipe, passes=passes, compute=compute)
    recorder = Recorder(data.labels, len(included), soft=data.soft, loss=data.loss)
    for run, rows in enumerate(torch.from_numpy(np.flatnonzero(chosen)) for chosen in included):

        def after(done: int, _total: int, before: int = run * epochs) -> None:
            if progress is not None:
                progress(before + done, len(included) * epochs)

        trainer.fit(
            ImageSubset(data.images, rows),
            data.targets[rows],
            weights=generator(seed, Stream.SUBSET_RUNS, run, Stream.WEIGHTS),
            batches=generator(seed, Stream.SUBSET_RUNS, run, Stream.BATCHES),
            epochs=epochs,
            progress=after,
        )
        record_clean_pass(trainer, data.images, recorder, run)
    return recorder.finish({}).probability, trainer.rounding
