"""3×3 convolutions by Winograd's minimal filtering: the same result with a quarter of the multiplications.

A 4×4 output tile depends on a 6×6 input tile. Small fixed matrices transform tiles and kernels to 36 values each, where
convolving is multiplying: 36 products instead of 144 = 16 · 9 (Lavin and Gray, "Fast algorithms for convolutional neural
networks", 2016, F(4×4, 3×3)). `winograd.cpp` transforms the tiles. In float32 the result differs from that of a direct
convolution by about 3e-6 of its norm.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from condense_once.nets.native.build import POINTER, SIZE, function

MIN_CHANNELS = 32  # in and out; narrower convolutions are faster in PyTorch
CHUNK_TILES = 64  # tiles convolved at a time, or those of one image, so that they stay in the caches
PADDING = 48  # floats between the 36 planes of tiles: at a power of two apart they would share cache sets

# The kernel transform along one dimension; points 0, ±1, ±2 and infinity, as in winograd.cpp.
_G = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)


class WinogradConv2d(nn.Conv2d):
    """A 3×3 convolution with stride 1 and padding 1, by Winograd for float32 on the CPU."""

    def forward(self, x: Tensor) -> Tensor:
        if not (x.is_cpu and x.dim() == 4 and x.dtype == self.weight.dtype == torch.float32):
            return super().forward(x)
        out: Tensor = convolve(x, self.weight, self.bias)
        return out


def use_winograd(net: nn.Module) -> nn.Module:
    """Replace the convolutions that Winograd speeds up, in place; the weights stay the same tensors."""
    for parent in list(net.modules()):
        for name, layer in parent.named_children():
            if type(layer) is nn.Conv2d and _is_faster(layer):
                fast = WinogradConv2d(layer.in_channels, layer.out_channels, 3, padding=1, device="meta")
                fast.weight, fast.bias = layer.weight, layer.bias
                setattr(parent, name, fast)
    return net


def _is_faster(layer: nn.Conv2d) -> bool:
    plain = (layer.stride, layer.padding, layer.dilation, layer.groups) == ((1, 1), (1, 1), (1, 1), 1)
    wide = min(layer.in_channels, layer.out_channels) >= MIN_CHANNELS
    bare = isinstance(layer.weight, nn.Parameter) and not (layer._forward_pre_hooks or layer._forward_hooks)
    return layer.kernel_size == (3, 3) and plain and wide and bare and layer.padding_mode == "zeros"


@torch.library.custom_op("condense_once::convolve", mutates_args=())
def convolve(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolve `x` [n, ch, h, w] with `weight` [out, ch, 3, 3], add `bias` [out]: [n, out, h, w], zero-padded."""
    out, buffer, kernels = _empty_like(x, len(weight)), _tile_buffer(x), _kernel_tiles(weight)
    products = x.new_empty(36, _count_tiles(_chunks(x)[0]), len(weight))
    for images, part in zip(_chunks(x), _chunks(out), strict=True):
        tiles = _transform("input_tiles", images, buffer)
        multiplied = torch.bmm(tiles, kernels, out=products[:, : tiles.shape[1]])
        _call("output_images", multiplied, part, part.shape, multiplied.stride(0))
    return out if bias is None else out.add_(bias[:, None, None])


@torch.library.custom_op("condense_once::correlate", mutates_args=())
def correlate(x: Tensor, grad: Tensor) -> Tensor:
    """The gradient [out, ch, 3, 3] of the weight, from the input `x` [n, ch, h, w] and the output's `grad` [n, out, h, w]."""
    kernels = grad.new_zeros(36, grad.shape[1], x.shape[1])
    buffer, grad_buffer = _tile_buffer(x), _tile_buffer(grad)
    for images, part in zip(_chunks(x), _chunks(grad), strict=True):
        kernels.baddbmm_(_transform("output_tiles", part, grad_buffer).mT, _transform("input_tiles", images, buffer))
    weight = (_kernel_transform().T @ kernels.flatten(1)).view(3, 3, *kernels.shape[1:]).permute(2, 3, 0, 1)
    return weight.contiguous(memory_format=torch.channels_last)


# Each is the other's derivative, so both can be differentiated any number of times.

_requested = threading.local()


@contextmanager
def gradients_of_images_only() -> Iterator[None]:
    """Skip the gradients of weights in backward passes of this block.

    PyTorch asks a custom operator for the gradients of all inputs that require them, even if only those of images are used.
    """
    _requested.images_only = True
    try:
        yield
    finally:
        _requested.images_only = False


def _transposed(weight: Tensor) -> Tensor:
    """Kernels rotated by 180° with channels swapped: convolving with them is the transposed convolution."""
    return weight.flip(2, 3).transpose(0, 1)


def _save_for_convolve(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _convolve_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    x, weight = ctx.saved_tensors
    images, weights, biases = ctx.needs_input_grad
    if getattr(_requested, "images_only", False):
        weights = biases = False
    return (
        convolve(grad, _transposed(weight), None) if images else None,
        correlate(x, grad) if weights else None,
        _channel_sums(grad) if biases else None,
    )


def _save_for_correlate(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _correlate_backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, grad = ctx.saved_tensors
    images, gradients = ctx.needs_input_grad
    return (
        convolve(grad, _transposed(weight), None) if images else None,
        convolve(x, weight, None) if gradients else None,
    )


@torch.library.custom_op("condense_once::sums", mutates_args=())
def _channel_sums(grad: Tensor) -> Tensor:
    """Sum over images and pixels; an operator, as the compiler would specialise on the batch size."""
    return grad.sum((0, 2, 3))


@convolve.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return _empty_like(x, len(weight))


@correlate.register_fake
def _(x: Tensor, grad: Tensor) -> Tensor:
    return grad.new_empty(grad.shape[1], 3, 3, x.shape[1]).permute(0, 3, 1, 2)


@_channel_sums.register_fake
def _(grad: Tensor) -> Tensor:
    return grad.new_empty(grad.shape[1])


convolve.register_autograd(_convolve_backward, setup_context=_save_for_convolve)
correlate.register_autograd(_correlate_backward, setup_context=_save_for_correlate)
_channel_sums.register_autograd(
    lambda ctx, total: total[None, :, None, None].expand(ctx.shape),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "shape", inputs[0].shape),
)


def _empty_like(x: Tensor, channels: int) -> Tensor:
    """Uninitialised images of the same size with another number of channels."""
    n, _, height, width = x.shape
    return x.new_empty(n, height, width, channels).permute(0, 3, 1, 2)


def _count_tiles(images: Tensor) -> int:
    n, _, height, width = images.shape
    return n * -(-height // 4) * -(-width // 4)


def _chunks(images: Tensor) -> tuple[Tensor, ...]:
    return torch.split(images, max(CHUNK_TILES // max(_count_tiles(images[:1]), 1), 1))


def _tile_buffer(images: Tensor) -> Tensor:
    """Memory for the tiles of a chunk; allocating it for each chunk would take a tenth longer."""
    return images.new_empty(36, _count_tiles(_chunks(images)[0]) * images.shape[1] + PADDING)


def _transform(name: str, images: Tensor, buffer: Tensor) -> Tensor:
    """Images [n, ch, h, w] to transformed tiles [36, tiles, ch], by the native function of this name."""
    count, channels = _count_tiles(images), images.shape[1]
    images = images.contiguous(memory_format=torch.channels_last)
    _call(name, images, buffer, images.shape, buffer.stride(0))
    return buffer[:, : count * channels].view(36, count, channels)


def _call(name: str, source: Tensor, target: Tensor, shape: torch.Size, plane: int) -> None:
    n, channels, height, width = shape
    arrays = source.data_ptr(), target.data_ptr()
    native = function(name, POINTER, POINTER, *[SIZE] * 5, ctypes.c_int)
    native(*arrays, n, height, width, channels, plane, torch.get_num_threads())


def _kernel_tiles(weight: Tensor) -> Tensor:
    """[out, ch, 3, 3] transformed to [36, ch, out]."""
    out, channels = weight.shape[:2]
    return (_kernel_transform() @ weight.permute(2, 3, 1, 0).reshape(9, -1)).view(36, channels, out)


@cache
def _kernel_transform() -> Tensor:
    """Of both dimensions at once: [36, 9]."""
    one_dimension = torch.tensor(_G)
    return torch.kron(one_dimension, one_dimension)
