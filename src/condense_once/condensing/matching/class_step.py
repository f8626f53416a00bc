"""One class step: the matching loss of a class and its gradient for the class's images.

Gradient matching differentiates a gradient. In float32 on the CPU, autograd does so through native kernels, which can be
differentiated twice. Elsewhere both gradients are one `torch.func` graph that `torch.compile` takes whole, once for all
classes and networks: weights, images, label and sampled augmentation are inputs.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from condense_once.augment import Augmentation, Params
from condense_once.condensing.decode import decode, decode_bounded
from condense_once.condensing.matching.distances import DISTANCES, MATCHED_DIMS
from condense_once.condensing.matching.network import MatchingNetwork
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.real_images import Normaliser
from condense_once.errors import BadOption
from condense_once.nets import Shape, is_large, penultimate, use_native_kernels
from condense_once.nets.native import gradients_of_images_only
from condense_once.text import first_line
from condense_once.train.hardware import Compiled
from condense_once.train.trainer import MAX_PROGRAMS, compiler_errors

NOT_COMPILED = Compiled(native=False, whole=False)
CHUNK = 16  # large images per pass: the graph of one takes some 200 MB at 224×224

Weights = Mapping[str, Tensor]
Groups = Sequence[Tensor]  # the rows of each group of patches that is matched on its own
# By `torch.func`; by autograd; by autograd with a graph, to be differentiated again.
Mode = Literal["traced", "detached", "with_graph"]

log = logging.getLogger(__name__)


class ClassStep:
    """Loss and image gradient of one class at a time, under the weights of a `MatchingNetwork`."""

    def __init__(
        self,
        network: MatchingNetwork,
        recipe: MatchingRecipe,
        normalise: Normaliser,
        shape: Shape,
        factor: int,
        compiled: Compiled = NOT_COMPILED,
    ) -> None:
        self.recipe, self._factor, self._network, self._normalise = recipe, factor, network, normalise
        self._distance = DISTANCES[recipe.distance]
        grey = torch.full((shape[0], 1, 1), 0.5, device=network.device)  # IDC pads with mid-grey
        self._fill = (grey if recipe.space == "pixels" else normalise(grey)).flatten()
        self.chunked = is_large(shape)
        self.compiled = compiled.whole and not compiled.native and not self.chunked
        self._statistics = BatchStatistics(_fastest(network.plain, compiled), recipe, network.device, network.dtype)
        self._run = torch.compile(self._traced) if self.compiled else self._traced
        if self.compiled:
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_PROGRAMS)

    def __call__(
        self, images: Tensor, real: Tensor, label: Tensor, rows: Tensor, params: Params, *subsets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss of a class and its gradient for the mosaics `images` [ipc, ch, h, w].

        `real` are pixels on the scale 0…1, `rows` the patches to match, `params` one augmentation for all. `subsets` are rows
        that are matched on their own with the same real images; their losses are added. The network is in evaluation mode.
        """
        inputs = (self._network.weights(), images.detach(), real, label, (rows, *subsets), params)
        if self.compiled:
            try:
                return self._run(*inputs)
            except compiler_errors() as error:
                log.warning("Compiling failed (%s); continuing without.", first_line(error))
                self.compiled = False
        return self.in_chunks(*inputs) if self.chunked else self._eager(*inputs)

    def patches(self, images: Tensor) -> Tensor:
        """All patches of one class as network inputs."""
        return self._to_inputs(decode(images, self._factor, self._fill))

    @torch.no_grad()
    def features(self, images: Tensor, real: Tensor, params: Params) -> tuple[Tensor, Tensor]:
        """Features of the real images and of all patches of a class, [n, d] each, under one augmentation."""
        patches = Augmentation.apply(self.patches(images), params)
        return self._features_of(self._augment_real(real, params)), self._features_of(patches)

    def _features_of(self, x: Tensor) -> Tensor:
        weights, parts = self._network.weights(), torch.split(x, CHUNK) if self.chunked else (x,)
        return torch.cat([self._statistics.features(weights, part) for part in parts])

    def _traced(
        self, weights: Weights, images: Tensor, real: Tensor, label: Tensor, groups: Groups, params: Params
    ) -> tuple[Tensor, Tensor]:
        targets = self._statistics(weights, self._augment_real(real, params), label, "traced")

        def loss(images: Tensor) -> Tensor:
            patches = (self._augment_patches(images, rows, params) for rows in groups)
            distances = [self._distance(targets, self._statistics(weights, x, label, "traced")) for x in patches]
            return torch.stack(distances).sum()

        gradient, value = torch.func.grad_and_value(loss)(images)
        return value, gradient

    def _eager(
        self, weights: Weights, images: Tensor, real: Tensor, label: Tensor, groups: Groups, params: Params
    ) -> tuple[Tensor, Tensor]:
        found = self._statistics(weights, self._augment_real(real, params), label, "detached")
        targets = [tensor.detach() for tensor in found]
        images = images.requires_grad_()
        patches = (self._augment_patches(images, rows, params) for rows in groups)
        distances = [self._distance(targets, self._statistics(weights, x, label, "with_graph")) for x in patches]
        value = torch.stack(distances).sum()
        with gradients_of_images_only():
            return value.detach(), torch.autograd.grad(value, images)[0]

    def in_chunks(
        self, weights: Weights, images: Tensor, real: Tensor, label: Tensor, groups: Groups, params: Params
    ) -> tuple[Tensor, Tensor]:
        """The same in little memory. The statistics are means over images, so chunks can be differentiated one by one."""
        targets = self._mean((self._augment_real(part, params) for part in torch.split(real, CHUNK)), weights, label)
        found = [self._group_in_chunks(weights, images, targets, label, rows, params) for rows in groups]
        values, gradients = zip(*found, strict=True)
        return torch.stack(values).sum(), torch.stack(gradients).sum(0)

    def _group_in_chunks(
        self, weights: Weights, images: Tensor, targets: list[Tensor], label: Tensor, rows: Tensor, params: Params
    ) -> tuple[Tensor, Tensor]:
        """With s the mean statistics, D the distance and x the images, ∂D/∂x = Σ_chunks ∂s_chunk/∂x · ∂D/∂s.

        The cotangents ∂D/∂s are known after a first pass over all chunks.
        """
        chunks = torch.split(rows, CHUNK)
        with torch.no_grad():
            patches = [self._augment_patches(images, chunk, params) for chunk in chunks]
        synthetic = [tensor.requires_grad_() for tensor in self._mean(patches, weights, label)]
        value = self._distance(targets, synthetic)
        cotangents = torch.autograd.grad(value, synthetic)
        images, gradient = images.requires_grad_(), torch.zeros_like(images)
        for chunk in chunks:
            part = self._statistics(weights, self._augment_patches(images, chunk, params), label, "with_graph")
            product = torch.stack([(c * s).sum() for c, s in zip(cotangents, part, strict=True)]).sum()
            with gradients_of_images_only():
                gradient += torch.autograd.grad(product, images)[0] * (len(chunk) / len(rows))
        return value.detach(), gradient

    def _mean(self, chunks: Iterable[Tensor], weights: Weights, label: Tensor) -> list[Tensor]:
        """The statistics of all chunks together; each chunk's graph is freed before the next."""
        totals: list[Tensor] = []
        count = 0
        for x in chunks:
            part = [tensor.detach() * len(x) for tensor in self._statistics(weights, x, label, "detached")]
            totals = [total + more for total, more in zip(totals, part, strict=True)] if totals else part
            count += len(x)
        return [total / count for total in totals]

    def _augment_real(self, real: Tensor, params: Params) -> Tensor:
        return Augmentation.apply(self._normalise(real), params)

    def _augment_patches(self, images: Tensor, rows: Tensor, params: Params) -> Tensor:
        if self.recipe.decode == "bound":
            decoded = decode_bounded(images, self._factor, self._fill, self.recipe.max_patches)
            return Augmentation.apply(self._to_inputs(decoded)[rows], params)
        return Augmentation.apply(self.patches(images)[rows], params)

    def _to_inputs(self, decoded: Tensor) -> Tensor:
        return self._normalise(decoded) if self.recipe.space == "pixels" else decoded


class BatchStatistics:
    """What is matched of a batch of one class: gradients of the loss, or mean features. Both are means over the images."""

    def __init__(self, net: nn.Module, recipe: MatchingRecipe, device: torch.device, dtype: torch.dtype) -> None:
        self._logits, self._features = _Logits(net), _Features(net)
        self._device, self._dtype = device, dtype
        self._matched = () if recipe.distance == "features" else _matched_weights(net, recipe)

    def __call__(self, weights: Weights, x: Tensor, label: Tensor, mode: Mode) -> Sequence[Tensor]:
        """Of normalised images `x` [n, ch, h, w] of the class `label`."""
        if not self._matched:
            return [self.features(weights, x).mean(0)]
        matched = {name: weights[name] for name in self._matched}

        def loss(matched: Weights) -> Tensor:
            return cross_entropy(self._output(self._logits, {**weights, **matched}, x), label.expand(len(x)))

        if mode == "traced":
            return list(torch.func.grad(loss)(matched).values())
        leaves = {name: weight.detach().requires_grad_() for name, weight in matched.items()}
        return torch.autograd.grad(loss(leaves), list(leaves.values()), create_graph=mode == "with_graph")

    def features(self, weights: Weights, x: Tensor) -> Tensor:
        """The penultimate features of each image."""
        return self._output(self._features, weights, x)

    def _output(self, net: nn.Module, weights: Weights, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._dtype == torch.bfloat16):
            output: Tensor = functional_call(net, {f"net.{name}": w for name, w in weights.items()}, (x,))
        return output.float()


class _Logits(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits


class _Features(_Logits):
    def forward(self, x: Tensor) -> Tensor:
        return penultimate(self.net, x)


def _matched_weights(net: nn.Module, recipe: MatchingRecipe) -> tuple[str, ...]:
    dimensions = MATCHED_DIMS[recipe.distance]
    names = tuple(name for name, weight in net.named_parameters() if weight.ndim in dimensions)
    if not names:
        raise BadOption(
            f"{type(net).__name__} has no weights of {' or '.join(map(str, dimensions))} dimensions, which {recipe.method}"
            " matches; choose a `net` with convolutions, such as convnet-d3."
        )
    return names


def _fastest(net: nn.Module, compiled: Compiled) -> nn.Module:
    """The network, or a copy with native kernels whose parameters have the same names."""
    if not compiled.native:
        return net
    twin = copy.deepcopy(net)
    use_native_kernels(twin)
    return twin
