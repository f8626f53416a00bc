"""Training dynamics: statistics of every patch at every epoch of one training run.

Four scalars per patch and epoch are recorded, not the logits: all that the metrics of dynamics need. For millions of images
they are memory-mapped files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.condensed.soft_labels import Loss
from condense_once.nets import Shape, is_large
from condense_once.train.images import Images
from condense_once.train.memmap import new_array
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import TEST_BATCH, Trainer

RECIPE = Recipe(schedule="iteration")  # the authors' scoring run: lr drops by iteration, all else as in evaluation
RECIPE_LARGE = replace(RECIPE, augmentation="imagenet")  # the authors apply the small-image augmentation on top
ARRAYS = ("error", "margin", "probability", "correct")


@dataclass(frozen=True)
class Dynamics:
    """Statistics of the predicted probabilities p of each patch, given its label y, one-hot or soft.

    The error of labels to regress on is that of the outputs themselves, not of probabilities.
    """

    error: NDArray[np.float32]  # [E, N] ‖p − y‖₂, in 0…√2 unless y is regressed on
    margin: NDArray[np.float32]  # [E, N] p of the label minus the largest other p
    probability: NDArray[np.float32]  # [E, N] p of the label
    correct: NDArray[np.bool_]  # [E, N] whether the label had the largest p
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        return len(self.error)


class Recorder:
    """Fills the arrays of a `Dynamics` batch by batch; with a folder they are memory-mapped files in it."""

    def __init__(
        self,
        labels: Tensor,
        epochs: int,
        folder: Path | None = None,
        name: str = "training",
        *,
        soft: Tensor | None = None,
        loss: Loss = "cross_entropy",
    ) -> None:
        """`soft` are the targets `[n, C]` by soft labels, if these are trained on, by this `loss`."""
        self._labels, self._soft, self._loss = labels, soft, loss
        self.epochs_recorded = 0
        self._error, self._margin, self._probability, self._correct = (
            new_array((epochs, len(labels)), np.bool_ if what == "correct" else np.float32, folder, f"{name}-{what}")
            for what in ARRAYS
        )

    def __call__(self, epoch: int, rows: Tensor, logits: Tensor) -> None:
        self.epochs_recorded = max(self.epochs_recorded, epoch + 1)
        p = logits.cpu().softmax(1)
        label = self._labels[rows.cpu()]
        at = (epoch, rows.cpu().numpy())
        own = p.gather(1, label[:, None])[:, 0]
        other = p.scatter(1, label[:, None], -1.0).amax(1)
        if self._soft is None:
            # not by ‖p‖² − 2p_y + 1, which cancels for the easy patches, the ones that matter
            error = p.scatter_add(1, label[:, None], -torch.ones_like(own)[:, None])
        else:
            error = (logits.cpu() if self._loss == "mse" else p) - self._soft[rows.cpu()]
        self._error[at] = error.norm(dim=1).numpy()
        self._margin[at] = (own - other).numpy()
        self._probability[at] = own.numpy()
        self._correct[at] = (p.argmax(1) == label).numpy()

    def finish(self, settings: Mapping[str, Any], epochs: int | None = None) -> Dynamics:
        """What was recorded, or the first epochs of it."""
        first = slice(epochs)
        return Dynamics(
            self._error[first], self._margin[first], self._probability[first], self._correct[first], settings
        )


def recipe_for(shape: Shape) -> Recipe:
    """The recipe of a scoring run on images of this size."""
    return RECIPE_LARGE if is_large(shape) else RECIPE


def record_clean_pass(trainer: Trainer, images: Images, recorder: Recorder, epoch: int) -> None:
    """Record the predictions for all images in evaluation mode, without augmentation."""
    for rows in torch.split(torch.arange(len(images)), TEST_BATCH):
        recorder(epoch, rows, trainer.logits(images[rows]))
