"""The network that images are matched in: its weights are an expert's, and it has no gradients of its own.

That saves a third of the backward pass.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from condense_once.nets import NetChoice, features_and_logits, is_large, make_net, multiply_adds, use_native_kernels
from condense_once.nets.network import Network
from condense_once.nets.registry import Shape
from condense_once.text import first_line
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import PASS, dtype_and_compiler, find_device
from condense_once.train.trainer import MAX_PROGRAMS, compiler_errors

CHUNK = 16  # large images per pass: the graph of one takes some 200 MB at 224×224

log = logging.getLogger(__name__)


class FrozenNet:
    """Features and outputs of images, differentiable by the images only."""

    def __init__(self, net: NetChoice, shape: Shape, classes: int, *, passes: int, compute: ComputeConfig) -> None:
        """`passes` is the number of images that will pass through it: it decides whether compiling pays off."""
        self._device, self._chunked = find_device(compute.device), is_large(shape)
        module = make_net(net, shape, classes, generator=torch.Generator().manual_seed(0)).eval()
        work = passes * multiply_adds(module, shape) / PASS
        self._dtype, compiled = dtype_and_compiler(compute, self._device, work)
        native = compiled.native and use_native_kernels(module)
        self.compiled = compiled.whole and not native and not self._chunked
        self.module: nn.Module = module.to(self._device, memory_format=torch.channels_last).requires_grad_(False)  # type: ignore[call-overload]
        if self.compiled:
            self._compiled_forward = torch.compile(self._forward)
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MAX_PROGRAMS)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features [n, d] and logits [n, C]; of large images in chunks that are recomputed in the backward pass."""
        if self._chunked:
            parts = [checkpoint(self._forward, part, use_reentrant=False) for part in torch.split(x, CHUNK)]
            features, logits = zip(*parts, strict=True)
            return torch.cat(features), torch.cat(logits)
        if self.compiled and len(x) > 1:  # a dimension of one cannot be dynamic
            torch._dynamo.mark_dynamic(x, 0)
            try:
                return self._compiled_forward(x)
            except compiler_errors() as error:
                log.warning("torch.compile failed (%s); continuing without it.", first_line(error))
                self.compiled = False
        return self._forward(x)

    def _forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._dtype == torch.bfloat16):
            if not isinstance(self.module, Network):
                features, logits = features_and_logits(self.module, x)
                return features.float(), logits.float()
            features = self.module.features(x).float()
        return features, self.module.classifier(features)  # eight bits are too few for logits
