"""Refining a set for a file of few bytes: move its cells so that networks learn more from what the file keeps.

Rounding treats all coefficients alike. Networks do not: some of what is lost matters to them, some does not. So the cells are
updated by the difference of features of each patch before and after it is coded; the gradient goes straight through the rounding.
The networks are trained on the set itself, so no real image is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from condense_once.augment import Augmentation
from condense_once.byte_sizes import parse_bytes
from condense_once.condensed.accuracy_curve import ENTRY
from condense_once.condensed.bundled import as_set
from condense_once.condensed.codec.code import Code
from condense_once.condensed.codec.layered import coder_of, fit_code
from condense_once.condensed.codec.transform import MIDDLE, Transform
from condense_once.condensed.codec.within import best_within
from condense_once.condensed.file import SetFile
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import require_ranking
from condense_once.container import InMemory
from condense_once.errors import BadOption
from condense_once.nets import NetChoice, is_large, make_net, narrow_net, penultimate, use_native_kernels
from condense_once.nets.native import gradients_of_images_only
from condense_once.progress import Progress
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import PASS, how_compiled
from condense_once.train.images import training_data
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator
from condense_once.train.trainer import Trainer

STEPS = 400
NET = "convnet-d3-w32"  # that features of small images are matched in
BATCH, LARGE_BATCH = 200, 16  # patches of a step; of large images
RATE = (
    0.03  # of Adam, in steps of the quantiser, falling to zero along a cosine; chosen by accuracy (results/README.md)
)
TRAINING = Recipe(epochs=60, lr=0.02)  # of the network that features are matched in
SNAPSHOTS = 15  # of it, beside the one with random weights
PULL, TURN = 1e-3, 1.05  # first weight of the pull towards zero, and its change per step
EXACT = 2.0**24  # coefficients of this size show the decoder's transform as a matrix


def refine(
    data: CondensedSet | str | Path,
    bytes: int | str,  # noqa: A002 (as in budgets)
    *,
    steps: int = STEPS,
    net: NetChoice | None = None,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> CondensedSet:
    """The ranked set with its cells moved so that a file of at most `bytes` trains networks better.

    Save the result in that size: `save(refine(data, "30KB"), path, codec="layered", bytes="30KB")`. Patches that such a file
    has no room for stay as they are.
    """
    data, limit = as_set(data), parse_bytes(bytes)
    require_ranking(data.ranking, data.name)
    if steps < 1:
        raise BadOption(f"`steps` must be at least 1, not {steps}.")
    layered = SetFile(InMemory(best_within(data, limit), data.name)).layered
    if layered is None:
        return data  # it fits as it is
    layers = np.repeat(layered.layers, layered.code.group)[: layered.header.patches]
    kept = data.take(slice(len(layers)))
    matching = _Matching(kept, fit_code(data), torch.from_numpy(layers), net, seed, compute or ComputeConfig("float32"))
    for step in range(steps):
        matching.update(RATE * (1 + math.cos(math.pi * step / steps)) / 2)
        if progress is not None:
            progress(step + 1, steps)
    cells = data.cells.copy()
    cells[: len(kept)] = matching.cells()
    provenance = {key: value for key, value in data.provenance.items() if key != ENTRY}  # measured on other cells
    return replace(data, cells=cells, provenance={**provenance, "refined": {"bytes": limit, "steps": steps}})


class Quantiser:
    """What a decoder makes of coefficients, in torch; in the backward pass, nothing happens to them."""

    def __init__(self, transform: Transform, code: Code) -> None:
        values, count = math.prod(transform.shape), transform.coefficients
        linear = replace(transform, exponent=0)  # samples as they are: not around the middle, not clipped
        forward = linear.forward(np.eye(values).reshape(-1, *transform.shape)).T
        inverse = linear.inverse((np.eye(count) * EXACT).astype(np.int32)).reshape(count, values) / EXACT
        self._shape, self._exponent = transform.shape, transform.exponent
        self._forward = torch.from_numpy(forward.astype(np.float32))
        self._inverse = torch.from_numpy(inverse.astype(np.float32))
        self._steps = torch.tensor(code.steps, dtype=torch.float32)[torch.from_numpy(transform.components)]
        self._layers = code.layers

    def steps(self, layers: Tensor) -> Tensor:
        """Of each coefficient `[n, coefficients]`, of patches that so many layers `[n]` are kept of."""
        return self._steps * 2.0 ** (self._layers - layers[:, None])

    def coefficients(self, cells: Tensor) -> Tensor:
        """Of cells `[n, ch, h, w]` as they are stored, not rounded."""
        samples = cells - MIDDLE if self._exponent is None else cells * 2.0**self._exponent
        return samples.flatten(1) @ self._forward

    def cells(self, coefficients: Tensor) -> Tensor:
        samples = (coefficients @ self._inverse).view(-1, *self._shape)
        return samples + MIDDLE if self._exponent is None else samples * 2.0**-self._exponent

    @staticmethod
    def rounded(coefficients: Tensor, steps: Tensor) -> Tensor:
        """As decoded, with the gradient of the identity."""
        exact = coefficients.detach()
        magnitude = (exact.abs() / steps).floor()
        decoded = exact.sign() * (magnitude + 7 / 16) * steps * (magnitude > 0)
        return coefficients + (decoded - exact)


class _Matching:
    """The coefficients of the patches that are kept, and the networks that they are matched in."""

    def __init__(
        self, data: CondensedSet, code: Code, layers: Tensor, net: NetChoice | None, seed: int, compute: ComputeConfig
    ) -> None:
        self._data, self._sampling = data, generator(seed, "refine", "batches")
        self._quantiser = Quantiser(coder_of(data, code).transform, code)
        self._steps = self._quantiser.steps(layers)
        start = self._quantiser.coefficients(torch.from_numpy(data.cells.astype(np.float32)))
        self._levels = start / self._steps  # coefficients in steps of the last layer that is kept
        self._most, self._pull = int((self._levels.abs() >= 1).sum()), PULL
        self._momentum = torch.zeros_like(start)
        self._square = torch.zeros_like(start)
        self._updates = torch.zeros(len(data), 1)
        self._images = torch.from_numpy(data.inputs())
        self._augmentation = Augmentation.parse("color_crop_cutout_flip" if data.channels == 3 else "crop_cutout")
        self._mean, self._std = (torch.tensor(each)[:, None, None] for each in (data.space.mean, data.space.std))
        self._batches = self._sample_batches(LARGE_BATCH if is_large(data.shape) else BATCH)
        chosen = net or (narrow_net(data.shape) if is_large(data.shape) else NET)
        self._net = make_net(chosen, data.shape, len(data.classes), generator=generator(seed, "refine", "random"))
        self._snapshots = [_weights(self._net), *self._train(chosen, seed, compute)]
        if how_compiled(compute.compilation, torch.device("cpu"), torch.float32, PASS).native:
            use_native_kernels(self._net)
        self._net.eval().requires_grad_(False)

    def update(self, rate: float) -> None:
        """One step of Adam on some patches, in a network at some point of its training, under one augmentation."""
        rows = next(self._batches)
        self._net.load_state_dict(self._snapshots[self._sampled(len(self._snapshots))])
        params = self._augmentation.sample_shared(self._data.size, self._sampling)
        with torch.no_grad():
            targets = self._features(self._augmentation.apply(self._images[rows], params))
        spread = (targets - targets.mean(0)).square().sum(1).mean()
        levels = self._levels[rows].requires_grad_()
        decoded = self._quantiser.rounded(levels * self._steps[rows], self._steps[rows])
        images = self._inputs(self._quantiser.cells(decoded))
        features = self._features(self._augmentation.apply(images, params))
        loss = (features - targets).square().sum() / spread.clamp(min=1e-12)
        with gradients_of_images_only():
            (gradient,) = torch.autograd.grad(loss, levels)
        self._move(rows, levels.detach(), gradient, rate)

    def cells(self) -> np.ndarray:
        """The cells as they are to be coded."""
        cells = self._quantiser.cells(self._levels * self._steps).numpy()
        if self._data.space.kind == "pixels":
            cells = cells.round().clip(0, 255)
        return cells.astype(self._data.cells.dtype)

    def _move(self, rows: Tensor, levels: Tensor, gradient: Tensor, rate: float) -> None:
        """A pull towards zero, which costs the fewest bits, keeps as many coefficients at zero as there were."""
        gradient = gradient + self._pull * levels.sign() / (1 + levels.abs())
        self._updates[rows] += 1
        self._momentum[rows] = 0.9 * self._momentum[rows] + 0.1 * gradient
        self._square[rows] = 0.99 * self._square[rows] + 0.01 * gradient.square()
        mean = self._momentum[rows] / (1 - 0.9 ** self._updates[rows])
        square = self._square[rows] / (1 - 0.99 ** self._updates[rows])
        self._levels[rows] = levels - rate * mean / (square.sqrt() + 1e-6)
        self._pull *= TURN if int((self._levels.abs() >= 1).sum()) > self._most else 1 / TURN

    def _inputs(self, cells: Tensor) -> Tensor:
        """Network inputs, as `CondensedSet.inputs` makes them."""
        values = (cells / 255).clamp(0, 1) if self._data.space.kind == "pixels" else cells
        if self._data.factor > 1:
            values = interpolate(values, self._data.size, mode="bilinear", align_corners=False)
        return (values - self._mean) / self._std if self._data.space.kind == "pixels" else values

    def _features(self, images: Tensor) -> Tensor:
        return penultimate(self._net, images.contiguous(memory_format=torch.channels_last))

    def _train(self, net: NetChoice, seed: int, compute: ComputeConfig) -> list[dict[str, Tensor]]:
        """Snapshots of a network on its way, trained on the patches that are kept."""
        found: list[dict[str, Tensor]] = []
        passes = TRAINING.epochs * len(self._data)
        trainer = Trainer(net, training_data(self._data).spec, TRAINING, passes=passes, compute=compute)

        def keep(done: int, _total: int) -> None:
            if done % (TRAINING.epochs // SNAPSHOTS) == 0:
                found.append(_weights(trainer.net))

        trainer.fit(
            self._images,
            torch.from_numpy(self._data.labels),
            weights=generator(seed, "refine", "weights"),
            batches=generator(seed, "refine", "training"),
            progress=keep,
        )
        return found

    def _sample_batches(self, size: int) -> Iterator[Tensor]:
        while True:
            yield from torch.split(torch.randperm(len(self._data), generator=self._sampling), size)

    def _sampled(self, count: int) -> int:
        return int(torch.randint(count, (), generator=self._sampling))


def _weights(net: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in net.state_dict().items()}
