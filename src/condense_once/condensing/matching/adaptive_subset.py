"""MDC's adaptive subset loss: which first images of every class are matched as a set of their own, and which stay as they are.

Subset x of a class is all patches of its first x images, x = 1 … IPC − 1. While one network is matched, every step measures
how far the mean features of each subset are from those of the real images. The subset whose distance changed most since the
last such check is the most learnable one: for the next period, its matching loss is added to that of all images. Meanwhile,
the images of the largest smaller subset that had its period are frozen.

Where the paper leaves it open, this is as in the authors' program: the first check is after the first network, the others
after the last network of each period, and only then are distances measured; features are the last layer's input; a subset that
is chosen again is not frozen by its own earlier period. Unlike there, the patches of a subset are those of whole images, also
in mosaics; a subset is frozen as soon as the next one is chosen, also the first one; distances are not rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once.condensing.distributed import World
from condense_once.train.step_trainer import to_tensor

CHOSEN, LAST, SUMS = "subset/chosen", "subset/last", "subset/sums"


class AdaptiveSubset:
    """The subsets chosen so far, and the distances that decide the next choice."""

    def __init__(self, classes: int, ipc: int, period: int, device: torch.device) -> None:
        """A subset is current for `period` networks; there are at least two images per class."""
        self._period = period
        self.chosen: list[int] = []  # the last one is the current one
        self._last = torch.zeros(0, device=device)  # distances at the last check, [ipc − 1]; before it, none
        self._sums = torch.zeros(classes, ipc - 1, device=device)  # over the steps with this network

    @property
    def current(self) -> int:
        """Images per class of the current subset; 0 before the first check."""
        return self.chosen[-1] if self.chosen else 0

    @property
    def frozen(self) -> int:
        """Images per class that get no gradient."""
        return max((size for size in self.chosen[:-1] if size < self.current), default=0)

    def is_checked_after(self, iteration: int) -> bool:
        """Whether distances are measured with this network, to choose a subset after it."""
        return iteration == 0 or (iteration + 1) % self._period == 0

    def start_network(self) -> None:
        self._sums.zero_()

    def add(self, label: int, real: Tensor, patches: Tensor) -> None:
        """Count the distances of one step, from the features of real images and of all patches of a class."""
        self._sums[label] += subset_distances(real, patches, self._sums.shape[1] + 1)

    def gather(self, world: World) -> None:
        """Fill in the sums of classes that other processes own."""
        world.gather_classes(self._sums)

    def choose(self, steps: int) -> None:
        """Make the most learnable subset the current one, after so many steps of every class; of equal ones the smallest."""
        distances = self._sums.mean(0) / steps
        self.chosen.append(1 + int((distances - self._last).abs().argmax()) if len(self._last) else 1)
        self._last = distances

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """Distances of the last check, and sums per class [C, ipc − 1] since."""
        return self._last, self._sums

    def state(self) -> dict[str, NDArray[Any]]:
        last, sums = (tensor.cpu().numpy() for tensor in self.tensors)
        return {CHOSEN: np.array(self.chosen, np.uint32), LAST: last, SUMS: sums}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        chosen, sizes = state[CHOSEN], self._sums.shape[1]
        if chosen.ndim != 1 or chosen.dtype.kind != "u" or not np.isin(chosen, np.arange(1, sizes + 1)).all():
            raise ValueError(f"its subsets are not of 1 to {sizes} images")
        self.chosen = chosen.tolist()
        self._last = torch.zeros(sizes if self.chosen else 0, device=self._sums.device)
        self._last.copy_(to_tensor(state[LAST], self._last))
        self._sums.copy_(to_tensor(state[SUMS], self._sums))


def subset_distances(real: Tensor, patches: Tensor, ipc: int) -> Tensor:
    """‖mean features of real images − mean features of the first x images‖² for x = 1 … ipc − 1.

    `real` is [n, d], `patches` [factor²·ipc, d], the first cell of every image before the second.

    >>> subset_distances(torch.zeros(1, 1), torch.tensor([[1.0], [3.0], [9.0]]), 3)  # means 1 and 2
    tensor([1., 4.])
    """
    images = patches.view(-1, ipc, patches.shape[1]).mean(0)
    counts = torch.arange(1, ipc, device=patches.device)[:, None]
    means = images[:-1].cumsum(0) / counts
    return (means - real.mean(0)).square().sum(1)
