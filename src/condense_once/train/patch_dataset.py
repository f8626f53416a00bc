"""A condensed set as a PyTorch dataset, for DataLoaders and training loops of your own; and our trainer on such a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from condense_once.augment import make_augmenter
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import LabelUse, check_label_use, targets_of
from condense_once.nets import NetChoice, default_net
from condense_once.progress import Progress
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import DataSpec, Images, StreamedImages
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import Trainer

Item = tuple[Tensor, Tensor]  # [ch, h, w] and a class [] or a vector [C]


class PatchDataset(Dataset[Item]):
    """Patches of a set as normalised images `[ch, h, w]`, each with its target; `CondensedSet.torch` makes it.

    A target is the class, or the vector `[C]` of a soft label; `loss` says by which loss to train on it. Cells are decoded
    as they are asked for, so a copy in a worker is as small as the set. A DataLoader fetches whole batches at once.

    Augmentation is sampled from PyTorch's global generator, which a DataLoader seeds in each of its workers: for the same
    batches again, seed it with `torch.manual_seed`.

    >>> import condense_once
    >>> dataset = condense_once.resize("cifar10-idc-ipc10", ipc=1).torch(augmentation="color_crop_flip")
    >>> dataset
    <PatchDataset of cifar10-idc-ipc10-40of400: 40 patches 3×32×32, hard labels, augmented by color_crop_flip>
    >>> image, label = dataset[0]
    >>> image.shape, label
    (torch.Size([3, 32, 32]), tensor(0))
    """

    def __init__(
        self,
        data: CondensedSet,
        *,
        augmentation: str | None = None,
        labels: LabelUse | None = None,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        """`augmentation` is that of a recipe, such as `color_crop_flip`; `transform` is applied to each image after it.

        `labels` are soft or hard; by default those that `evaluate` trains on.
        """
        self.data, self.classes = data, data.classes
        self.labels, self.augmentation, self.transform = check_label_use(labels, data), augmentation, transform
        targets = targets_of(data) if self.labels == "soft" else None
        self.targets = torch.tensor(data.labels if targets is None else targets.values)  # [n] or [n, C]
        self.loss = "cross_entropy" if targets is None else targets.loss
        self._augmenter = make_augmenter(augmentation or "none", data.space, data.size)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.data.shape))
        augmented = f", augmented by {self.augmentation}" if self.augmentation else ""
        return f"<PatchDataset of {self.data.name}: {len(self)} patches {shape}, {self.labels} labels{augmented}>"

    def __getitem__(self, row: int) -> Item:
        if not -len(self) <= row < len(self):
            raise IndexError(f"Row {row} is not one of {len(self)} patches.")  # ends a plain for loop
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> list[Item]:
        """A batch, decoded and augmented at once; a DataLoader calls it."""
        x = torch.from_numpy(self.data.inputs(np.asarray(rows, np.int64)))
        if self.augmentation:
            x = self._augmenter.apply(x, self._augmenter.sample(len(x), self.data.size, torch.default_generator))
        images = x if self.transform is None else map(self.transform, x)
        return list(zip(images, self.targets[list(rows)], strict=True))

    @property
    def images(self) -> Images:
        """All patches by row, not augmented, as `Trainer` reads them."""
        return StreamedImages(len(self), self.data.inputs)

    @property
    def spec(self) -> DataSpec:
        """The kind of its images and labels, which a `Trainer` is made for."""
        return DataSpec.of(self.data, "mse" if self.loss == "mse" else "cross_entropy")


def train_network(
    dataset: PatchDataset | CondensedSet,
    net: NetChoice | None = None,
    *,
    recipe: Recipe | None = None,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> nn.Module:
    """Train a network as `evaluate` does, and return it in evaluation mode. Same seed, same machine: same weights.

    `recipe` is by default the paper's; its augmentation is applied instead of the dataset's, and a `transform` is not.

    >>> import condense_once
    >>> small = condense_once.resize("cifar10-idc-ipc10", ipc=1)
    >>> net = train_network(small, "convnet-d2-w16", recipe=Recipe(epochs=2))
    >>> net(torch.from_numpy(small.inputs())).shape
    torch.Size([40, 10])
    """
    if isinstance(dataset, CondensedSet):
        dataset = PatchDataset(dataset)
    recipe = recipe or Recipe()
    network, passes = net or default_net(dataset.data.shape), recipe.epochs * len(dataset)
    trainer = Trainer(network, dataset.spec, recipe, passes=passes, compute=compute)
    trainer.fit(
        dataset.images,
        dataset.targets,
        weights=generator(seed, Stream.EVALUATION, 0, Stream.WEIGHTS),
        batches=generator(seed, Stream.EVALUATION, 0, Stream.BATCHES),
        progress=progress,
    )
    trained: nn.Module = trainer.net
    return trained.eval()
