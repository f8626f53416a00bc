"""The trainer: a set is one tensor or read by row, a batch is a slice of a permutation.

A trainer builds its network once, with native kernels for float32 on a CPU, and re-initialises it in place for every run.
With `torch.compile`, many short runs share one compilation: the batch dimension is dynamic, so short last batches and sets
of other sizes run through the same program.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any, Protocol

import torch
from torch import Generator, Tensor
from torch.nn.modules.dropout import _DropoutNd

from condense_once.augment import CutMix, Mix, make_augmenter, mixed_cross_entropy, mixed_squared_error
from condense_once.nets import NetChoice, Network, initialise, make_net, multiply_adds, net_name, use_native_kernels
from condense_once.nets.native import has_native_kernels
from condense_once.nets.weights import seeded_globally
from condense_once.progress import Progress
from condense_once.text import first_line, plural
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import PASS, compute_dtype, find_device, how_compiled
from condense_once.train.images import DataSpec, Images
from condense_once.train.memory import memory_for
from condense_once.train.recipe import Recipe

MAX_PROGRAMS = 64  # compiled per process
TEST_BATCH = 100  # larger activations do not stay in the caches: batches of 500 take half as long again

ADVICE = "choose a narrower `net` or smaller images, or train fewer networks in parallel"

log = logging.getLogger(__name__)


class BatchCallback(Protocol):
    """Called after every training batch with its rows and their logits, computed before the update."""

    def __call__(self, epoch: int, rows: Tensor, logits: Tensor) -> None: ...


class Trainer:
    """Trains one network on images of one kind, any number of times."""

    def __init__(
        self,
        net: NetChoice,
        data: DataSpec,
        recipe: Recipe,
        *,
        passes: int,
        compute: ComputeConfig | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        """`passes` is the number of images that will be trained on, over all epochs: it decides whether compiling pays off.

        `check` is called before every training and test batch; it raises an exception to stop.
        """
        self.recipe = recipe
        shape = "×".join(map(str, data.shape))
        self._job = f"train {net_name(net)} on {plural(recipe.batch, 'image')} of {shape} at a time"
        compute = compute or ComputeConfig()
        self.device = find_device(compute.device)
        self.dtype = compute_dtype(compute.precision, self.device)
        module = make_net(net, data.shape, data.classes, generator=torch.Generator().manual_seed(0))
        work = passes * multiply_adds(module, data.shape) / PASS
        native, self.compiled = how_compiled(compute.compilation, self.device, self.dtype, work)
        if native and use_native_kernels(module):
            self.compiled = False  # nothing is left to speed up
        self.native = has_native_kernels(module)
        self.net = module.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._augmenter = make_augmenter(recipe.augmentation, data.space, data.shape[1:])
        self._cutmix = CutMix(recipe.cutmix)
        self._criterion = mixed_squared_error if data.loss == "mse" else mixed_cross_entropy
        self._check = check or (lambda: None)
        self._stochastic = any(isinstance(layer, _DropoutNd) for layer in module.modules())
        self._compiled_loss = torch.compile(self._loss) if self.compiled else self._loss
        self._compiled_forward = torch.compile(self._forward) if self.compiled else self._forward
        if self.compiled:  # every shape, network and number of threads is a program; the default limit of 8 is too low
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_PROGRAMS)

    @property
    def rounding(self) -> dict[str, Any]:
        """What decides the last digits of its results, to be recorded with them."""
        return {"threads": torch.get_num_threads(), "native": self.native}

    def fit(
        self,
        inputs: Images,
        targets: Tensor,
        *,
        weights: Generator,
        batches: Generator,
        epochs: int | None = None,
        on_batch: BatchCallback | None = None,
        progress: Progress | None = None,
        stop: Callable[[int], bool] | None = None,
    ) -> None:
        """Train from fresh weights on `inputs` [n, ch, h, w] and `targets` [n] or [n, C]; `epochs` may end the recipe early.

        `weights` samples the initial weights; `batches` samples the order, augmentation and CutMix. `progress` counts epochs.
        `stop`, called with the number of epochs that are done, ends training if it returns true.
        """
        initialise(self.net, weights)
        # layers such as Dropout sample from the global generator
        random = seeded_globally(weights) if self._stochastic else nullcontext()
        with random, memory_for(self._job, ADVICE):
            total = self.recipe.epochs if epochs is None else epochs
            self._fit(inputs, targets, batches, total, on_batch, progress, stop)

    def _fit(
        self,
        inputs: Images,
        targets: Tensor,
        batches: Generator,
        epochs: int,
        on_batch: BatchCallback | None,
        progress: Progress | None,
        stop: Callable[[int], bool] | None,
    ) -> None:
        self.net.train()
        optimiser = self._new_optimiser()
        inputs = inputs.to(self.device) if isinstance(inputs, Tensor) else inputs
        targets = targets.to(self.device)
        for epoch in range(epochs):
            order = torch.randperm(len(inputs), generator=batches).to(self.device)
            parts = split_rows(order, self.recipe.batch)
            for step, rows in enumerate(parts):
                optimiser.param_groups[0]["lr"] = self.recipe.lr_at(epoch, step, len(parts))
                self._check()
                logits = self._step(inputs[rows].to(self.device), targets[rows], optimiser, batches)
                if on_batch is not None:
                    on_batch(epoch, rows, logits)
            if progress is not None:
                progress(epoch + 1, epochs)
            if stop is not None and stop(epoch + 1):
                return

    def _new_optimiser(self) -> torch.optim.SGD:
        recipe = self.recipe
        return torch.optim.SGD(
            self.net.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
        )

    @torch.inference_mode()
    def logits(self, inputs: Images) -> Tensor:
        """The network's outputs for `inputs`, in evaluation mode and batches of `TEST_BATCH`, without augmentation."""
        self.net.eval()
        parts = [self._test(inputs[at : at + TEST_BATCH]) for at in range(0, len(inputs), TEST_BATCH)]
        self.net.train()
        return torch.cat(parts)

    def _test(self, x: Tensor) -> Tensor:
        self._check()
        x = x.to(self.device)
        if self.compiled and len(x) == TEST_BATCH:  # compiled for this one size
            try:
                return self._compiled_forward(x).cpu()
            except compiler_errors() as error:
                self._disable_compiler(error)
        return self._forward(x).cpu()

    def _step(self, x: Tensor, y: Tensor, optimiser: torch.optim.Optimizer, batches: Generator) -> Tensor:
        """Train on one batch; returns its logits, computed before the update."""
        size = (x.shape[2], x.shape[3])
        params = self._augmenter.sample(len(x), size, batches)
        mix = self._cutmix.sample(len(x), size, batches)
        optimiser.zero_grad()
        logits = self._backward(x, y, params, mix)
        optimiser.step()
        return logits

    def _backward(self, x: Tensor, y: Tensor, params: Any, mix: Mix) -> Tensor:
        """Compute gradients; if compiling fails, continue without it."""
        if self.compiled and len(x) > 1:  # a dimension of one cannot be dynamic
            for tensor in (x, y, mix.partner, *(part for part in params if part is not None)):
                torch._dynamo.mark_dynamic(tensor, 0)
            torch._dynamo.mark_static(x, 2)
            torch._dynamo.mark_static(x, 3)
            try:
                loss, logits = self._compiled_loss(x, y, params, mix)
                loss.backward()  # type: ignore[no-untyped-call]
            except compiler_errors() as error:
                self._disable_compiler(error)
            else:
                return logits.detach()
        loss, logits = self._loss(x, y, params, mix)
        loss.backward()  # type: ignore[no-untyped-call]
        return logits.detach()

    def _disable_compiler(self, error: Exception) -> None:
        log.warning("torch.compile failed (%s); continuing without it.", first_line(error))
        self.compiled = False
        self.net.zero_grad()

    def _loss(self, x: Tensor, y: Tensor, params: Any, mix: Mix) -> tuple[Tensor, Tensor]:
        logits = self._forward(CutMix.apply(self._augmenter.apply(x, params), mix))
        partner = mix.partner.to(y.device)
        return self._criterion(logits, y, y[partner], mix.ratio.to(y.device)), logits

    def _forward(self, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            if not isinstance(self.net, Network):
                logits: Tensor = self.net(x)
                return logits.float()
            features = self.net.features(x)
        return self.net.classifier(features.float())  # type: ignore[no-any-return]  # eight bits are too few for logits


def split_rows(order: Tensor, batch: int) -> list[Tensor]:
    """The batches of an epoch. A single leftover image joins the batch before it: batch norm cannot train on one."""
    parts = list(torch.split(order, batch))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


@cache
def compiler_errors() -> tuple[type[Exception], ...]:
    """The exceptions by which `torch.compile` fails; errors of a user's network are raised again by the plain run.

    Imported only when needed: the compiler's modules take a second and a half to import.
    """
    from torch._dynamo.exc import TorchDynamoException
    from torch._inductor.exc import CppCompileError, InvalidCxxCompiler
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    return TorchDynamoException, ConstraintViolationError, CppCompileError, InvalidCxxCompiler, OSError
