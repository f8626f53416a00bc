"""Native kernels: C++ for float32 networks on the CPU, compiled on first use. No other package knows a compiler."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.nets.native.build import has_compiler, is_available, warn_of_no_compiler
from condense_once.nets.native.norm_relu_pool import NormReluPool, fuse_norm_relu_pool
from condense_once.nets.native.winograd import WinogradConv2d, gradients_of_images_only, use_winograd

__all__ = [
    "NormReluPool",
    "WinogradConv2d",
    "gradients_of_images_only",
    "has_compiler",
    "has_native_kernels",
    "use_native_kernels",
    "warn_of_no_compiler",
]

_NORMS = (_BatchNorm, nn.GroupNorm, nn.LayerNorm)


def has_native_kernels(net: nn.Module) -> bool:
    """Whether some of its layers are native ones."""
    return any(isinstance(layer, WinogradConv2d | NormReluPool) for layer in net.modules())


def use_native_kernels(net: nn.Module) -> bool:
    """Replace the layers that the native kernels speed up, in place; the weights stay the same tensors.

    Returns whether nothing is left for PyTorch's compiler to speed up, as in a ConvNet with instance norm. If the kernels
    cannot be compiled, the network stays as it is.
    """
    if not is_available():
        return False
    use_winograd(net)
    fuse_norm_relu_pool(net)
    layers = list(net.modules())
    left = any(isinstance(layer, _NORMS) and not isinstance(layer, NormReluPool) for layer in layers)
    return not left and any(isinstance(layer, NormReluPool) for layer in layers)
