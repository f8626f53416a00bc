"""The network that learns one task after the other."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once import Recipe, Space
from condense_once.nets import Network
from condense_once.train.images import DataSpec
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import StepTrainer

BATCH = 32  # half of it from the memory, once there is one
PASSES = 1_000_000  # of all runs together: enough that the native kernels, built once per machine, pay off


class Learner:
    """A ConvNet with one output per class; every batch mixes images of the new task with those of the memory."""

    def __init__(self, net: str, space: Space, classes: int, *, steps: int, seed: int = 0) -> None:
        self._recipe = Recipe(epochs=steps, batch=BATCH, lr=0.02)  # the rate drops at 2/3 and 5/6 of each task
        spec = DataSpec((3, 32, 32), classes, space)
        self._trainer = StepTrainer(net, spec, self._recipe, passes=PASSES)
        self._trainer.reinitialise(generator(seed, Stream.WEIGHTS))
        self._batches = generator(seed, Stream.BATCHES)

    def learn(self, new: tuple[Tensor, Tensor], memory: tuple[Tensor, Tensor]) -> None:
        """Train on a task: network inputs and labels, new ones and those in memory."""
        from_memory = BATCH // 2 if len(memory[1]) else 0
        for step in range(self._recipe.epochs):
            x, y = self._sample(new, BATCH - from_memory)
            if from_memory:
                old_x, old_y = self._sample(memory, from_memory)
                x, y = torch.cat([x, old_x]), torch.cat([y, old_y])
            self._trainer.update(x, y, self._batches, lr=self._recipe.lr_at(step))

    def accuracy(self, images: Tensor, labels: Tensor, seen: list[int]) -> float:
        """The accuracy in % on the test images of the classes seen so far, which are the only answers."""
        rows = torch.isin(labels, torch.tensor(seen)).nonzero()[:, 0]
        logits = self._trainer.logits(images[rows])[:, seen]
        return 100 * float((torch.tensor(seen)[logits.argmax(1)] == labels[rows]).float().mean())

    @torch.inference_mode()
    def features(self, images: Tensor) -> NDArray[np.float32]:
        """What the last layer reads of network inputs, `[n, d]`, scaled to length 1 as in iCaRL."""
        net = self._trainer.net
        assert isinstance(net, Network)  # noqa: S101 (for the type checker)
        found = torch.cat([net.features(part).flatten(1) for part in torch.split(images, 100)])
        scaled: NDArray[np.float32] = torch.nn.functional.normalize(found).numpy()
        return scaled

    def _sample(self, data: tuple[Tensor, Tensor], count: int) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(data[1]), (count,), generator=self._batches)
        return data[0][rows], data[1][rows]
