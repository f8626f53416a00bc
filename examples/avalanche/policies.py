"""Two exemplar policies for Avalanche 0.6: a selection strategy for its buffers, and a buffer that a ranked set fills.

from avalanche.training.plugins import ReplayPlugin
from avalanche.training.storage_policy import ParametricBuffer

real = ParametricBuffer(400, groupby="class", selection_strategy=EasyFirstSelectionStrategy())
condensed = RankedSetBuffer(400, load("cifar10-idc-ipc10"))
plugin = ReplayPlugin(mem_size=400, storage_policy=condensed)  # or real
"""

from __future__ import annotations

from typing import Any

import torch
from avalanche.benchmarks.utils import AvalancheDataset, _make_taskaware_tensor_classification_dataset
from avalanche.training.storage_policy import ExemplarsBuffer, ExemplarsSelectionStrategy
from torch.utils.data import DataLoader

from condense_once import CondensedSet
from examples.avalanche.orders import easy_first, rows_to_keep


class EasyFirstSelectionStrategy(ExemplarsSelectionStrategy):  # type: ignore[misc]
    """Keeps the images that the current network finds easy: at a few exemplars per class, hard ones teach little."""

    @torch.no_grad()
    def make_sorted_indices(self, strategy: Any, data: AvalancheDataset) -> list[int]:
        strategy.model.eval()
        batches = DataLoader(data, batch_size=strategy.eval_mb_size, collate_fn=getattr(data, "collate_fn", None))
        logits = [strategy.model(x.to(strategy.device)).cpu() for x, *_ in batches]
        return easy_first(torch.cat(logits).numpy(), torch.as_tensor(list(data.targets)).numpy())


class RankedSetBuffer(ExemplarsBuffer):  # type: ignore[misc]
    """Condensed patches of the classes seen so far; a new class or a new size cuts the others to shorter prefixes."""

    def __init__(self, max_size: int, data: CondensedSet) -> None:
        super().__init__(max_size)
        self._data = data
        self._seen: dict[int, None] = {}  # in the order of arrival

    def update(self, strategy: Any, **_: Any) -> None:
        self._seen |= dict.fromkeys(int(label) for label in strategy.experience.classes_in_this_experience)
        self.resize(strategy, self.max_size)

    def resize(self, strategy: Any, new_size: int) -> None:
        self.max_size = new_size
        kept = rows_to_keep(self._data, self._seen, new_size)
        if len(kept):
            images, labels = torch.from_numpy(self._data.inputs(kept)), self._data.labels[kept].tolist()
            self.buffer = _make_taskaware_tensor_classification_dataset(images, labels, task_labels=0, targets=labels)
