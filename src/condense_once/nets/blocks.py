"""What a ConvNet does between two convolutions, instance norm, ReLU and pooling, as one layer; for float32 on the CPU.

It can be differentiated twice, for condensing compares gradients.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeGuard

import torch
import torch.nn.functional as fn
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.nets.native import POINTER, SIZE, function
from condense_once.nets.winograd import with_winograd

_FORWARD = ("blocks.cpp", "norm_relu_pool", *[POINTER] * 6, *[SIZE] * 4, ctypes.c_float, ctypes.c_int)
_NORMS = (_BatchNorm, nn.GroupNorm, nn.LayerNorm)
_BACKWARD = ("blocks.cpp", "norm_relu_pool_backward", *[POINTER] * 9, *[SIZE] * 4, ctypes.c_int)
_TWICE = ("blocks.cpp", "norm_relu_pool_twice", *[POINTER] * 12, *[SIZE] * 4, ctypes.c_int)


class NormReluPool(nn.GroupNorm):
    """`nn.GroupNorm(ch, ch)`, `nn.ReLU()` and `nn.AvgPool2d(2)` one after another, with the parameters of the first."""

    def __init__(self, norm: nn.GroupNorm) -> None:
        super().__init__(norm.num_groups, norm.num_channels, norm.eps, device="meta")
        self.weight, self.bias = norm.weight, norm.bias

    def forward(self, x: Tensor) -> Tensor:
        if not (x.is_cpu and x.dtype == self.weight.dtype == torch.float32):
            return fn.avg_pool2d(super().forward(x).relu(), 2)
        out: Tensor = norm_relu_pool(x, self.weight, self.bias, self.eps)[0]
        return out


def with_native_layers(net: nn.Module) -> bool:
    """Put our layers in the place of those that they are faster than; the weights are the same tensors.

    Returns whether nothing is left that PyTorch's compiler would make faster, as in a ConvNet with instance norm.
    """
    function(*_FORWARD)  # if it cannot be compiled, nothing is changed
    with_winograd(net)
    for parent in list(net.modules()):
        if type(parent) is nn.Sequential:
            for at in range(len(parent) - 2):
                norm, relu, pool = (parent[at + k] for k in range(3))
                if _is_instance_norm(norm) and type(relu) is nn.ReLU and _halves(pool):
                    parent[at], parent[at + 1], parent[at + 2] = NormReluPool(norm), nn.Identity(), nn.Identity()
    layers = list(net.modules())
    left = any(isinstance(layer, _NORMS) and not isinstance(layer, NormReluPool) for layer in layers)
    return not left and any(isinstance(layer, NormReluPool) for layer in layers)


def _is_instance_norm(layer: nn.Module) -> TypeGuard[nn.GroupNorm]:
    if type(layer) is not nn.GroupNorm or layer._forward_pre_hooks or layer._forward_hooks:
        return False
    return layer.num_groups == layer.num_channels and isinstance(layer.weight, nn.Parameter)


def _halves(layer: nn.Module) -> bool:
    pooling = nn.AvgPool2d(2)
    return type(layer) is nn.AvgPool2d and layer.extra_repr() == pooling.extra_repr()


@torch.library.custom_op("condense_once::norm_relu_pool", mutates_args=())
def norm_relu_pool(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`x` [n, ch, h, w] to [n, ch, h/2, w/2], and for the way back the mean and one over the deviation, each [n, ch]."""
    x = x.contiguous(memory_format=torch.channels_last)
    n, channels, height, width = x.shape
    out = x.new_empty(n, height // 2, width // 2, channels).permute(0, 3, 1, 2)
    mean, scale = x.new_empty(n, channels), x.new_empty(n, channels)
    arrays = (each.data_ptr() for each in (x, weight, bias, out, mean, scale))
    function(*_FORWARD)(*arrays, n, height, width, channels, eps, torch.get_num_threads())
    return out, mean, scale


@torch.library.custom_op("condense_once::norm_relu_pool_backward", mutates_args=())
def _backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    grad, x = (each.contiguous(memory_format=torch.channels_last) for each in (grad, x))
    n, channels, height, width = x.shape
    grad_x = torch.empty_like(x, memory_format=torch.channels_last)
    grad_weight, grad_bias = x.new_empty(2, n, channels)
    arrays = (each.data_ptr() for each in (grad, x, weight, bias, mean, scale, grad_x, grad_weight, grad_bias))
    function(*_BACKWARD)(*arrays, n, height, width, channels, torch.get_num_threads())
    return grad_x, grad_weight.sum(0), grad_bias.sum(0)


@torch.library.custom_op("condense_once::norm_relu_pool_twice", mutates_args=())
def _twice(
    v: Tensor,
    by_weight: Tensor,
    by_bias: Tensor,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    scale: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `grad`, `x` and `weight`, from what the three results of `_backward` are multiplied by."""
    v, grad, x = (each.contiguous(memory_format=torch.channels_last) for each in (v, grad, x))
    by_weight, by_bias = by_weight.contiguous(), by_bias.contiguous()
    n, channels, height, width = x.shape
    grad_grad, grad_x = (torch.empty_like(each, memory_format=torch.channels_last) for each in (grad, x))
    grad_weight = x.new_empty(n, channels)
    given = (v, by_weight, by_bias, grad, x, weight, bias, mean, scale)
    arrays = (each.data_ptr() for each in (*given, grad_grad, grad_x, grad_weight))
    function(*_TWICE)(*arrays, n, height, width, channels, torch.get_num_threads())
    return grad_grad, grad_x, grad_weight.sum(0)


@norm_relu_pool.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    n, channels, height, width = x.shape
    out = x.new_empty(n, height // 2, width // 2, channels).permute(0, 3, 1, 2)
    return out, x.new_empty(n, channels), x.new_empty(n, channels)


@_backward.register_fake
def _(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.channels_last), torch.empty_like(weight), torch.empty_like(bias)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, float], output: tuple[Tensor, Tensor, Tensor]) -> None:
    x, weight, bias, _ = inputs
    ctx.save_for_backward(x, weight, bias, *output[1:])


def _derive(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor, None]:
    return (*_backward(grad, *ctx.saved_tensors), None)


norm_relu_pool.register_autograd(_derive, setup_context=_keep)


def _keep_backward(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs)


def _derive_backward(ctx: Any, *by: Tensor) -> tuple[Tensor | None, ...]:
    # mean and scale are known from x, so what they would hand on is in the gradient of x already
    return (*_twice(*by, *ctx.saved_tensors), None, None, None)


_backward.register_autograd(_derive_backward, setup_context=_keep_backward)
