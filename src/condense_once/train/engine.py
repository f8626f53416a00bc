"""The trainer: a whole set is one tensor, a batch is a slice of a permutation.

A trainer builds, lays out and compiles its network once; each training then starts from fresh weights drawn in place,
so that many small trainings pay for one compilation. The batch dimension is left open in the compiled code: short last
batches and sets of another size run through the same program.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Generator, Tensor, nn

from condense_once.augment import Augmentation, CutMix, ImageNetAugmentation, Mix, mixed_cross_entropy
from condense_once.condensed.space import Space
from condense_once.nets import Shape, initialise, make_net
from condense_once.train.hardware import Compilation, Precision, compute_dtype, find_device, should_compile
from condense_once.train.recipe import Recipe

TEST_BATCH = 100  # activations of more do not stay in the caches: 500 take half as long again
LARGE = 64  # images above this side are ImageNet-like

log = logging.getLogger(__name__)

NetChoice = str | Callable[[Shape, int], nn.Module]
Progress = Callable[[int], None]  # called after every epoch with the number of epochs done


class Watcher(Protocol):
    """Someone who looks on: the rows of a batch and what the network said of them, before it learnt from them."""

    def __call__(self, epoch: int, rows: Tensor, logits: Tensor) -> None: ...


class Augmenter(Protocol):
    """Changes of normalised images, drawn apart from applied."""

    def sample(self, n: int, size: tuple[int, int], generator: Generator) -> Any: ...

    def apply(self, x: Tensor, params: Any) -> Tensor: ...


class PixelAugmenter:
    """ImageNet's transforms on normalised images: they are defined on pixels, so the normalisation is undone and redone."""

    def __init__(self, space: Space, side: int) -> None:
        self._changes = ImageNetAugmentation(side)
        self._mean = torch.tensor(space.mean)[:, None, None]
        self._std = torch.tensor(space.std)[:, None, None]

    def sample(self, n: int, size: tuple[int, int], generator: Generator) -> Any:
        return self._changes.sample(n, size, generator)

    def apply(self, x: Tensor, params: Any) -> Tensor:
        mean, std = self._mean.to(x.device), self._std.to(x.device)
        return (self._changes.apply(x * std + mean, params) - mean) / std


def make_augmenter(name: str, space: Space, shape: Shape) -> Augmenter:
    return PixelAugmenter(space, shape[1]) if name == "imagenet" else Augmentation.parse(name)


def default_net(shape: Shape) -> str:
    """The network that condensation and evaluation use for images of this size."""
    return "convnet-d3" if max(shape[1:]) <= LARGE else "resnet10-ap"


class Trainer:
    """Trains one architecture on sets of one image shape, again and again."""

    def __init__(
        self,
        net: NetChoice,
        shape: Shape,
        classes: int,
        recipe: Recipe,
        space: Space,
        *,
        passes: int,
        precision: Precision = "auto",
        compilation: Compilation = "auto",
        device: str = "cpu",
    ) -> None:
        """`passes` is how many images will go through the network in all trainings: it decides whether compiling pays."""
        self.recipe = recipe
        self.device = find_device(device)
        self.dtype = compute_dtype(precision, self.device)
        self.compiled = should_compile(compilation, self.device, passes * shape[1] * shape[2] / 32**2)
        module = make_net(net, shape, classes, generator=torch.Generator().manual_seed(0))
        self.net = module.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._augmenter = make_augmenter(recipe.augmentation, space, shape)
        self._cutmix = CutMix(recipe.cutmix)
        self._run = torch.compile(self._loss) if self.compiled else self._loss
        self._infer = torch.compile(self._forward) if self.compiled else self._forward

    def fit(
        self,
        inputs: Tensor,
        targets: Tensor,
        *,
        weights: Generator,
        batches: Generator,
        epochs: int | None = None,
        watch: Watcher | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Train from fresh weights on `inputs` [n, ch, h, w] and `targets` [n]; `epochs` may end the recipe early.

        `weights` draws the initial weights; `batches` draws orders, augmentation and CutMix.
        """
        recipe = self.recipe
        initialise(self.net, weights)
        self.net.train()
        optimiser = torch.optim.SGD(
            self.net.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
        )
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        steps = -(-len(inputs) // recipe.batch)
        for epoch in range(min(epochs or recipe.epochs, recipe.epochs)):
            order = torch.randperm(len(inputs), generator=batches).to(self.device)
            for step, rows in enumerate(torch.split(order, recipe.batch)):
                optimiser.param_groups[0]["lr"] = recipe.rate(epoch, step, steps)
                logits = self._step(inputs[rows], targets[rows], optimiser, batches)
                if watch is not None:
                    watch(epoch, rows, logits)
            if progress is not None:
                progress(epoch + 1)

    @torch.inference_mode()
    def logits(self, inputs: Tensor) -> Tensor:
        """What the network says of `inputs`, in evaluation mode and batches of `TEST_BATCH`, without augmentation."""
        self.net.eval()
        forward = self._infer if self.compiled and len(inputs) >= TEST_BATCH else self._forward
        parts = []
        for part in torch.split(inputs, TEST_BATCH):
            whole = len(part) == TEST_BATCH  # compiled for this one size
            parts.append((forward if whole else self._forward)(part.to(self.device)).cpu())
        self.net.train()
        return torch.cat(parts)

    def _step(self, x: Tensor, y: Tensor, optimiser: torch.optim.Optimizer, batches: Generator) -> Tensor:
        size = (x.shape[2], x.shape[3])
        drawn = self._augmenter.sample(len(x), size, batches)
        mix = self._cutmix.sample(len(x), size, batches)
        optimiser.zero_grad()
        logits = self._backward(x, y, drawn, mix)
        optimiser.step()
        return logits

    def _backward(self, x: Tensor, y: Tensor, drawn: Any, mix: Mix) -> Tensor:
        """Compute gradients; where the compiler fails, quietly go on without it."""
        if self.compiled and len(x) > 1:  # a dimension of one cannot be left open
            for tensor in (x, y, mix.partner, *(part for part in drawn if part is not None)):
                torch._dynamo.mark_dynamic(tensor, 0)
            try:
                loss, logits = self._run(x, y, drawn, mix)
                loss.backward()  # type: ignore[no-untyped-call]
            except Exception as error:  # whatever the compiler or the system's C++ raises
                log.warning(
                    "Compiling failed (%s); going on without.", str(error).splitlines()[0] if str(error) else error
                )
                self.compiled = False
                self.net.zero_grad()
            else:
                return logits.detach()
        loss, logits = self._loss(x, y, drawn, mix)
        loss.backward()  # type: ignore[no-untyped-call]
        return logits.detach()

    def _loss(self, x: Tensor, y: Tensor, drawn: Any, mix: Mix) -> tuple[Tensor, Tensor]:
        logits = self._forward(CutMix.apply(self._augmenter.apply(x, drawn), mix))
        partner = mix.partner.to(y.device)
        return mixed_cross_entropy(logits, y, y[partner], mix.ratio.to(y.device)), logits

    def _forward(self, x: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            logits: Tensor = self.net(x.contiguous(memory_format=torch.channels_last))
        return logits.float()
