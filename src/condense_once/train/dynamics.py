"""Dynamics: what one training run showed of every patch at every epoch.

Four numbers per patch and epoch are kept, not the logits: E × N scalars, from which every dynamics metric follows. For
millions of images they are kept in a folder, and the images are read as they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import NetChoice, Shape, default_net, is_large, net_name
from condense_once.progress import Progress
from condense_once.train.hardware import ComputeConfig
from condense_once.train.images import Images, TrainingData, training_data
from condense_once.train.memmap import new_array
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import TEST_BATCH, Trainer

RECIPE = Recipe(schedule="iteration")  # as the authors record: drops by iteration, everything else as in evaluation
RECIPE_LARGE = replace(RECIPE, augmentation="imagenet")  # theirs goes on to augment as for small images, on top
ARRAYS = ("error", "margin", "probability", "correct")


@dataclass(frozen=True)
class Dynamics:
    """What is kept of a patch, where p are the probabilities it was given and y its label as a one-hot vector."""

    error: NDArray[np.float32]  # [E, N] ‖p − y‖₂, in 0…√2
    margin: NDArray[np.float32]  # [E, N] p of the label minus the largest other p
    probability: NDArray[np.float32]  # [E, N] p of the label
    correct: NDArray[np.bool_]  # [E, N] whether the label had the largest p
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        return len(self.error)


class Recorder:
    """Fills the arrays of a `Dynamics`, batch by batch; with a folder they are files in it, not memory."""

    def __init__(self, labels: Tensor, epochs: int, folder: Path | None = None, name: str = "training") -> None:
        self._labels = labels
        self._error, self._margin, self._probability, self._correct = (
            new_array((epochs, len(labels)), np.bool_ if what == "correct" else np.float32, folder, f"{name}-{what}")
            for what in ARRAYS
        )

    def __call__(self, epoch: int, rows: Tensor, logits: Tensor) -> None:
        p = logits.cpu().softmax(1)
        label = self._labels[rows.cpu()]
        at = (epoch, rows.cpu().numpy())
        own = p.gather(1, label[:, None])[:, 0]
        other = p.scatter(1, label[:, None], -1.0).amax(1)
        # not by ‖p‖² − 2p_y + 1, which cancels for just the easy patches that matter
        self._error[at] = p.scatter_add(1, label[:, None], -torch.ones_like(own)[:, None]).norm(dim=1).numpy()
        self._margin[at] = (own - other).numpy()
        self._probability[at] = own.numpy()
        self._correct[at] = (p.argmax(1) == label).numpy()

    def finish(self, settings: Mapping[str, Any]) -> Dynamics:
        return Dynamics(self._error, self._margin, self._probability, self._correct, settings)


@dataclass(frozen=True)
class RecordedRun:
    """One training run that was watched."""

    training: Dynamics  # from the training passes themselves
    clean: Dynamics | None  # from a pass in evaluation mode after every epoch, if asked for
    trainer: Trainer  # with the network as training left it
    inputs: Images


def recipe_for(shape: Shape) -> Recipe:
    """How a network is trained to record the dynamics of images of this size."""
    return RECIPE_LARGE if is_large(shape) else RECIPE


def record_run(
    data: CondensedSet | Source | TrainingData,
    *,
    epochs: int,
    net: NetChoice | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
    clean: bool = False,
    compute: ComputeConfig | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> RecordedRun:
    """Train on all patches, or on the train split of a source, and watch each of them, for the first `epochs` of the recipe.

    As the authors do, the outputs are those of the training pass itself: augmented and possibly mixed inputs, weights
    as they are before the update. With `clean`, those of a pass in evaluation mode after every epoch are recorded too.
    What is recorded is kept in memory or, with `folder`, in files there.
    """
    data = data if isinstance(data, TrainingData) else training_data(data)
    recipe = recipe or recipe_for(data.shape)
    if not 1 <= epochs <= recipe.epochs:
        raise BadOption(f"The recipe has {recipe.epochs} epochs; {epochs} of them cannot be recorded.")
    choice = net or default_net(data.shape)
    trainer = Trainer(choice, data.spec, recipe, passes=epochs * len(data), compute=compute)
    recorder = Recorder(data.labels, epochs, folder)
    clean_recorder = Recorder(data.labels, epochs, folder, "clean") if clean else None

    def after(done: int, total: int) -> None:
        if clean_recorder is not None:
            look(trainer, data.images, clean_recorder, done - 1)
        if progress is not None:
            progress(done, total)

    trainer.fit(
        data.images,
        data.labels,
        weights=generator(seed, Stream.SCORING_RUN, Stream.WEIGHTS),
        batches=generator(seed, Stream.SCORING_RUN, Stream.BATCHES),
        epochs=epochs,
        on_batch=recorder,
        progress=after,
    )
    settings = {"net": net_name(choice), "recipe": asdict(recipe), "epochs": epochs, "seed": seed, "set": data.name}
    return RecordedRun(
        training=recorder.finish(settings),
        clean=None if clean_recorder is None else clean_recorder.finish({**settings, "clean": True}),
        trainer=trainer,
        inputs=data.images,
    )


def look(trainer: Trainer, images: Images, recorder: Recorder, epoch: int) -> None:
    """Record what the network says of all images in evaluation mode, a batch of them at a time."""
    for rows in torch.split(torch.arange(len(images)), TEST_BATCH):
        recorder(epoch, rows, trainer.logits(images[rows]))
