"""Instance norm, ReLU and 2×2 average pooling fused into one layer, for float32 on the CPU.

It can be differentiated twice, as gradient matching needs.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeGuard

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from condense_once.nets.native.build import POINTER, SIZE, function

_FORWARD = ("norm_relu_pool", *[POINTER] * 6, *[SIZE] * 4, ctypes.c_float, ctypes.c_int)
_BACKWARD = ("norm_relu_pool_backward", *[POINTER] * 9, *[SIZE] * 4, ctypes.c_int)
_DOUBLE_BACKWARD = ("norm_relu_pool_double_backward", *[POINTER] * 12, *[SIZE] * 4, ctypes.c_int)


class NormReluPool(nn.GroupNorm):
    """`nn.GroupNorm(ch, ch)`, `nn.ReLU()` and `nn.AvgPool2d(2)` in one pass, with the parameters of `norm`."""

    def __init__(self, norm: nn.GroupNorm) -> None:
        super().__init__(norm.num_groups, norm.num_channels, norm.eps, device="meta")
        self.weight, self.bias = norm.weight, norm.bias

    def forward(self, x: Tensor) -> Tensor:
        if not (x.is_cpu and x.dtype == self.weight.dtype == torch.float32):
            return fn.avg_pool2d(super().forward(x).relu(), 2)
        out: Tensor = norm_relu_pool(x, self.weight, self.bias, self.eps)[0]
        return out


def fuse_norm_relu_pool(net: nn.Module) -> None:
    """Fuse every instance norm, ReLU and pooling in a row, in place; the weights stay the same tensors."""
    for parent in list(net.modules()):
        if type(parent) is nn.Sequential:
            for at in range(len(parent) - 2):
                norm, relu, pool = (parent[at + k] for k in range(3))
                if _is_instance_norm(norm) and type(relu) is nn.ReLU and _is_half_pooling(pool):
                    parent[at], parent[at + 1], parent[at + 2] = NormReluPool(norm), nn.Identity(), nn.Identity()


def _is_instance_norm(layer: nn.Module) -> TypeGuard[nn.GroupNorm]:
    if type(layer) is not nn.GroupNorm or layer._forward_pre_hooks or layer._forward_hooks:
        return False
    return layer.num_groups == layer.num_channels and isinstance(layer.weight, nn.Parameter)


def _is_half_pooling(layer: nn.Module) -> bool:
    return type(layer) is nn.AvgPool2d and layer.extra_repr() == nn.AvgPool2d(2).extra_repr()


@torch.library.custom_op("condense_once::norm_relu_pool", mutates_args=())
def norm_relu_pool(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`x` [n, ch, h, w] to [n, ch, h/2, w/2]; also the mean and 1/std, each [n, ch], for the backward pass."""
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


@torch.library.custom_op("condense_once::norm_relu_pool_double_backward", mutates_args=())
def _double_backward(
    v: Tensor,
    v_weight: Tensor,
    v_bias: Tensor,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    scale: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `grad`, `x` and `weight`, from the cotangents `v`, `v_weight` and `v_bias` of `_backward`'s results."""
    v, grad, x = (each.contiguous(memory_format=torch.channels_last) for each in (v, grad, x))
    v_weight, v_bias = v_weight.contiguous(), v_bias.contiguous()
    n, channels, height, width = x.shape
    grad_grad, grad_x = (torch.empty_like(each, memory_format=torch.channels_last) for each in (grad, x))
    grad_weight = x.new_empty(n, channels)
    inputs = (v, v_weight, v_bias, grad, x, weight, bias, mean, scale)
    arrays = (each.data_ptr() for each in (*inputs, grad_grad, grad_x, grad_weight))
    function(*_DOUBLE_BACKWARD)(*arrays, n, height, width, channels, torch.get_num_threads())
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


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, float], output: tuple[Tensor, Tensor, Tensor]) -> None:
    x, weight, bias, _ = inputs
    ctx.save_for_backward(x, weight, bias, *output[1:])


def _norm_relu_pool_backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor, None]:
    return (*_backward(grad, *ctx.saved_tensors), None)


norm_relu_pool.register_autograd(_norm_relu_pool_backward, setup_context=_save)


def _save_for_backward(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs)


def _backward_backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
    # mean and scale are functions of x, whose gradient includes theirs
    return (*_double_backward(*cotangents, *ctx.saved_tensors), None, None, None)


_backward.register_autograd(_backward_backward, setup_context=_save_for_backward)
