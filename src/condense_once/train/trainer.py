"""The trainer: a set is one tensor or read by row, a batch is a slice of a permutation.

A trainer builds and lays out its network once, with layers of our own in float32 on a CPU; each training then starts from
fresh weights drawn in place. Where PyTorch's compiler is called, many small trainings pay for one compilation: the batch
dimension is left open, so that short last batches and sets of another size run through the same program.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, Protocol

import torch
from torch import Generator, Tensor, nn
from torch._dynamo.exc import TorchDynamoException
from torch._inductor.exc import CppCompileError, InvalidCxxCompiler
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError
from torch.nn.modules.dropout import _DropoutNd

from condense_once.augment import CutMix, Mix, make_augmenter, mixed_cross_entropy
from condense_once.condensed.space import Space
from condense_once.nets import Network, Shape, initialise, make_net, multiply_adds, with_native_layers
from condense_once.nets.weights import seeded_globally
from condense_once.text import first_line
from condense_once.train.hardware import PASS, ComputeConfig, compute_dtype, find_device, how_compiled, keep_memory
from condense_once.train.images import Images
from condense_once.train.recipe import Recipe

PROGRAMS = 64  # compiled for one process, at most
TEST_BATCH = 100  # activations of more do not stay in the caches: 500 take half as long again

# What goes wrong in compiling; mistakes of a user's network are raised as they are by the plain run that follows.
COMPILER_ERRORS = (TorchDynamoException, ConstraintViolationError, CppCompileError, InvalidCxxCompiler, OSError)

log = logging.getLogger(__name__)

NetChoice = str | Callable[[Shape, int], nn.Module]
Progress = Callable[[int], None]  # called after every epoch with the number of epochs done


class Watcher(Protocol):
    """Someone who looks on: the rows of a batch and what the network said of them, before it learnt from them."""

    def __call__(self, epoch: int, rows: Tensor, logits: Tensor) -> None: ...


def net_name(net: NetChoice) -> str:
    return net if isinstance(net, str) else getattr(net, "__name__", "custom")


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
        compute: ComputeConfig | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        """`passes` is how many images will go through the network in training: it decides whether compiling pays.

        `check` is called before every batch, in training and in testing; it raises to stop.
        """
        self.recipe = recipe
        compute = compute or ComputeConfig()
        keep_memory()
        self.device = find_device(compute.device)
        self.dtype = compute_dtype(compute.precision, self.device)
        module = make_net(net, shape, classes, generator=torch.Generator().manual_seed(0))
        work = passes * multiply_adds(module, shape) / PASS
        layers, self.compiled = how_compiled(compute.compilation, self.device, self.dtype, work)
        if layers:
            with suppress(*COMPILER_ERRORS):
                self.compiled = not with_native_layers(module) and self.compiled
        self.net = module.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._augmenter = make_augmenter(recipe.augmentation, space, shape[1:])
        self._cutmix = CutMix(recipe.cutmix)
        self._check = check or (lambda: None)
        self._stochastic = any(isinstance(layer, _DropoutNd) for layer in module.modules())
        self._run = torch.compile(self._loss) if self.compiled else self._loss
        self._infer = torch.compile(self._forward) if self.compiled else self._forward
        if self.compiled:  # every shape, network and number of threads is a program of its own; eight are soon used up
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, PROGRAMS)

    def fit(
        self,
        inputs: Images,
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
        initialise(self.net, weights)
        # layers such as Dropout draw from the global generator while they train
        with seeded_globally(weights) if self._stochastic else nullcontext():
            self._fit(inputs, targets, batches, epochs, watch, progress)

    def _fit(
        self,
        inputs: Images,
        targets: Tensor,
        batches: Generator,
        epochs: int | None,
        watch: Watcher | None,
        progress: Progress | None,
    ) -> None:
        recipe = self.recipe
        self.net.train()
        optimiser = self._new_optimiser()
        inputs = inputs.to(self.device) if isinstance(inputs, Tensor) else inputs
        targets = targets.to(self.device)
        for epoch in range(recipe.epochs if epochs is None else epochs):
            order = torch.randperm(len(inputs), generator=batches).to(self.device)
            parts = split_rows(order, recipe.batch)
            for step, rows in enumerate(parts):
                optimiser.param_groups[0]["lr"] = recipe.rate(epoch, step, len(parts))
                self._check()
                logits = self._step(inputs[rows].to(self.device), targets[rows], optimiser, batches)
                if watch is not None:
                    watch(epoch, rows, logits)
            if progress is not None:
                progress(epoch + 1)

    def _new_optimiser(self) -> torch.optim.SGD:
        recipe = self.recipe
        return torch.optim.SGD(
            self.net.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
        )

    @torch.inference_mode()
    def logits(self, inputs: Images) -> Tensor:
        """What the network says of `inputs`, in evaluation mode and batches of `TEST_BATCH`, without augmentation."""
        self.net.eval()
        parts = [self._test(inputs[at : at + TEST_BATCH]) for at in range(0, len(inputs), TEST_BATCH)]
        self.net.train()
        return torch.cat(parts)

    def _test(self, x: Tensor) -> Tensor:
        self._check()
        x = x.to(self.device)
        if self.compiled and len(x) == TEST_BATCH:  # compiled for this one size
            try:
                return self._infer(x).cpu()
            except COMPILER_ERRORS as error:
                self._do_without_compiler(error)
        return self._forward(x).cpu()

    def _step(self, x: Tensor, y: Tensor, optimiser: torch.optim.Optimizer, batches: Generator) -> Tensor:
        size = (x.shape[2], x.shape[3])
        drawn = self._augmenter.sample(len(x), size, batches)
        mix = self._cutmix.sample(len(x), size, batches)
        optimiser.zero_grad()
        logits = self._backward(x, y, drawn, mix)
        optimiser.step()
        return logits

    def _backward(self, x: Tensor, y: Tensor, drawn: Any, mix: Mix) -> Tensor:
        """Compute gradients; where the compiler fails, go on without it."""
        if self.compiled and len(x) > 1:  # a dimension of one cannot be left open
            for tensor in (x, y, mix.partner, *(part for part in drawn if part is not None)):
                torch._dynamo.mark_dynamic(tensor, 0)
            torch._dynamo.mark_static(x, 2)
            torch._dynamo.mark_static(x, 3)
            try:
                loss, logits = self._run(x, y, drawn, mix)
                loss.backward()  # type: ignore[no-untyped-call]
            except COMPILER_ERRORS as error:
                self._do_without_compiler(error)
            else:
                return logits.detach()
        loss, logits = self._loss(x, y, drawn, mix)
        loss.backward()  # type: ignore[no-untyped-call]
        return logits.detach()

    def _do_without_compiler(self, error: Exception) -> None:
        log.warning("Compiling failed (%s); going on without.", first_line(error))
        self.compiled = False
        self.net.zero_grad()

    def _loss(self, x: Tensor, y: Tensor, drawn: Any, mix: Mix) -> tuple[Tensor, Tensor]:
        logits = self._forward(CutMix.apply(self._augmenter.apply(x, drawn), mix))
        partner = mix.partner.to(y.device)
        return mixed_cross_entropy(logits, y, y[partner], mix.ratio.to(y.device)), logits

    def _forward(self, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            if not isinstance(self.net, Network):
                logits: Tensor = self.net(x)
                return logits.float()
            features = self.net.features(x)
        return self.net.classifier(features.float())  # type: ignore[no-any-return]  # eight bits are too few for logits


def split_rows(order: Tensor, batch: int) -> list[Tensor]:
    """Batches of an epoch. A single image left over joins the batch before it: batch norm cannot learn from one."""
    parts = list(torch.split(order, batch))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts
