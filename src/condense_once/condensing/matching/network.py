"""The matching network: re-initialised for each iteration, trained between steps, saved in checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.augment import SingleAugmentation
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.nets import NetChoice, make_net, multiply_adds
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.step_trainer import StepTrainer


class MatchingNetwork(StepTrainer):
    """The trained network, and its weights for a class step."""

    def __init__(
        self,
        net: NetChoice,
        data: DataSpec,
        recipe: MatchingRecipe,
        *,
        passes: int,
        compute: ComputeConfig | None = None,
    ) -> None:
        update = Recipe(
            epochs=1,
            batch=recipe.net_batch,
            lr=recipe.net_lr,
            momentum=recipe.net_momentum,
            weight_decay=recipe.net_weight_decay,
            augmentation=recipe.net_augmentation,
            cutmix=recipe.net_cutmix,
        )
        super().__init__(net, data, update, passes=passes, compute=compute)
        # Without native kernels: `torch.func` cannot be traced through them.
        self.plain = make_net(net, data.shape, data.classes, generator=torch.Generator().manual_seed(0)).eval()
        self.multiply_adds = multiply_adds(self.plain, data.shape)  # per image
        self.plain.to(self.device)
        if recipe.single_op:
            self._augmenter = SingleAugmentation.parse(recipe.net_augmentation)
        self._norms = [layer for layer in self.net.modules() if isinstance(layer, _BatchNorm)]

    @property
    def has_batch_norm(self) -> bool:
        return bool(self._norms)

    def calibrate_batch_norm(self, x: Tensor, sampling: Generator) -> None:
        """Replace the running statistics by those of these images, as DC does before matching."""
        self.net.train()
        with self._layers_sample_from(sampling), _momentum(self._norms, 1.0), torch.no_grad():
            self.net(x)

    def weights(self) -> dict[str, Tensor]:
        """Parameters and buffers, by the names that they have in `plain`, too."""
        named = (*self.net.named_parameters(), *self.net.named_buffers())
        return {name: tensor.detach() for name, tensor in named}


@contextmanager
def _momentum(norms: list[_BatchNorm], momentum: float) -> Iterator[None]:
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = momentum
    try:
        yield
    finally:
        for norm, value in zip(norms, before, strict=True):
            norm.momentum = value
