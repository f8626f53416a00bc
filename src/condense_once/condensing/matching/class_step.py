"""One class step: how far a class's images are from real ones in the eyes of a network, and which way they have to go.

Where gradients are compared, the image gradient is a gradient of a gradient. In float32 on the CPU autograd takes it through
layers of our own, which can be differentiated twice. Elsewhere both gradients are one graph, written with `torch.func`, that
`torch.compile` takes whole, once for all classes and networks: weights, images, label and what augmentation drew are inputs.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from condense_once.augment import Augmentation, Params
from condense_once.condensing.matching.decode import decode, decode_within
from condense_once.condensing.matching.distances import DISTANCES
from condense_once.condensing.matching.network import Learner
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.problem import Normaliser, Problem
from condense_once.condensing.sight import Sight, Weights
from condense_once.nets import is_large, use_native_kernels
from condense_once.nets.native import gradients_of_images_only
from condense_once.text import first_line
from condense_once.train.hardware import Compiled
from condense_once.train.trainer import MAX_PROGRAMS, compiler_errors

PLAIN = Compiled(native=False, whole=False)
PART = 16  # large images that are looked at at once: the graph of one takes some 200 MB at 224×224

log = logging.getLogger(__name__)


class Matcher:
    """Loss and image gradient of one class at a time, with the network of a `Learner`."""

    def __init__(self, learner: Learner, problem: Problem, recipe: MatchingRecipe, compiled: Compiled = PLAIN) -> None:
        self.recipe, self._factor = recipe, problem.factor
        self._learner = learner
        self._distance = DISTANCES[recipe.distance]
        self._values = Normaliser(problem.space(recipe), learner.device)
        grey = torch.full((problem.shape[0], 1, 1), 0.5, device=learner.device)  # IDC pads with mid-grey
        self._fill = (grey if recipe.space == "pixels" else self._values.normalise(grey)).flatten()
        self.in_parts = is_large(problem.shape)
        self.compiled = compiled.whole and not compiled.native and not self.in_parts
        self._sight = Sight(_net_to_match_by(learner.plain, compiled), recipe, learner.device, learner.dtype)
        self._run = torch.compile(self._traced) if self.compiled else self._traced
        if self.compiled:
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_PROGRAMS)

    def __call__(
        self, images: Tensor, real: Tensor, label: Tensor, rows: Tensor, drawn: Params
    ) -> tuple[Tensor, Tensor]:
        """The loss of a class and its gradient for the mosaics `images` [ipc, ch, h, w].

        `real` are pixels on the scale 0…1; `rows` are the patches of the images that are looked at; `drawn` is one change
        for all. The network is looked at in evaluation mode.
        """
        given = (self._learner.state(), images.detach(), real, label, rows, drawn)
        if self.compiled:
            try:
                return self._run(*given)
            except compiler_errors() as error:
                _say_failed(error)
                self.compiled = False
        return self.by_parts(*given) if self.in_parts else self._plain(*given)

    def all_patches(self, images: Tensor) -> Tensor:
        """The patches of one class as a network wants them."""
        return self._as_inputs(decode(images, self._factor, self._fill))

    def _traced(
        self, weights: Weights, images: Tensor, real: Tensor, label: Tensor, rows: Tensor, drawn: Params
    ) -> tuple[Tensor, Tensor]:
        goal = self._sight(weights, self._seen(real, drawn), label, "traced")

        def loss(images: Tensor) -> Tensor:
            return self._distance(goal, self._sight(weights, self._made(images, rows, drawn), label, "traced"))

        gradient, value = torch.func.grad_and_value(loss)(images)
        return value, gradient

    def _plain(
        self, weights: Weights, images: Tensor, real: Tensor, label: Tensor, rows: Tensor, drawn: Params
    ) -> tuple[Tensor, Tensor]:
        goal = [tensor.detach() for tensor in self._sight(weights, self._seen(real, drawn), label, "once")]
        images = images.requires_grad_()
        value = self._distance(goal, self._sight(weights, self._made(images, rows, drawn), label, "twice"))
        with gradients_of_images_only():
            return value.detach(), torch.autograd.grad(value, images)[0]

    def by_parts(
        self, weights: Weights, images: Tensor, real: Tensor, label: Tensor, rows: Tensor, drawn: Params
    ) -> tuple[Tensor, Tensor]:
        """The same in little memory: what is seen is a mean over images, so its parts can be differentiated one by one.

        With s the mean of what is seen in the parts, D the distance and x the images, ∂D/∂x = Σ ∂s_part/∂x · ∂D/∂s; the
        last factor is known once all parts have been looked at.
        """
        parts = torch.split(rows, PART)
        goal = self._mean((self._seen(part, drawn) for part in torch.split(real, PART)), weights, label)
        with torch.no_grad():
            patches = [self._made(images, part, drawn) for part in parts]
        found = [tensor.requires_grad_() for tensor in self._mean(patches, weights, label)]
        value = self._distance(goal, found)
        push = torch.autograd.grad(value, found)
        images, gradient = images.requires_grad_(), torch.zeros_like(images)
        for part in parts:
            seen = self._sight(weights, self._made(images, part, drawn), label, "twice")
            along = torch.stack([(p * s).sum() for p, s in zip(push, seen, strict=True)]).sum()
            with gradients_of_images_only():
                gradient += torch.autograd.grad(along, images)[0] * (len(part) / len(rows))
        return value.detach(), gradient

    def _mean(self, parts: Iterable[Tensor], weights: Weights, label: Tensor) -> list[Tensor]:
        """What is seen in all parts together; of each, the graph is forgotten before the next is looked at."""
        totals: list[Tensor] = []
        count = 0
        for x in parts:
            seen = [tensor.detach() * len(x) for tensor in self._sight(weights, x, label, "once")]
            totals = [total + more for total, more in zip(totals, seen, strict=True)] if totals else seen
            count += len(x)
        return [total / count for total in totals]

    def _seen(self, real: Tensor, drawn: Params) -> Tensor:
        return Augmentation.apply(self._values.normalise(real), drawn)

    def _made(self, images: Tensor, rows: Tensor, drawn: Params) -> Tensor:
        return Augmentation.apply(self._matched_patches(images)[rows], drawn)

    def _matched_patches(self, images: Tensor) -> Tensor:
        """Those that are matched, before a part of them is drawn."""
        if self.recipe.decode == "bound":
            return self._as_inputs(decode_within(images, self._factor, self._fill, self.recipe.patches))
        return self.all_patches(images)

    def _as_inputs(self, decoded: Tensor) -> Tensor:
        return self._values.normalise(decoded) if self.recipe.space == "pixels" else decoded


def _net_to_match_by(net: nn.Module, compiled: Compiled) -> nn.Module:
    """The network, or a copy with faster layers, whose parameters have the same names."""
    if not compiled.native:
        return net
    twin = copy.deepcopy(net)
    use_native_kernels(twin)
    return twin


def _say_failed(error: BaseException) -> None:
    log.warning("Compiling failed (%s); going on without.", first_line(error))
