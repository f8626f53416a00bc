"""3×3 convolutions by Winograd's minimal filtering: the same result with a quarter of the multiplications.

An output tile of 4×4 pixels needs an input tile of 6×6. Small fixed matrices map tiles and kernels to 36 values each, where to
convolve is to multiply: 36 products take the place of 144 = 16 · 9 (Lavin and Gray, "Fast algorithms for convolutional
neural networks", 2016, F(4×4, 3×3)). Tiles are mapped by `winograd.cpp`, which is compiled when it is first needed. In float32
the result differs from that of a direct convolution by about 3e-6 of its norm.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from condense_once.nets.native import POINTER, SIZE, function

GAINS = 32  # channels in and out from which a convolution gains by it
TILES = 64  # that are convolved at a time, or those of one image, so that they stay in the caches
APART = 48  # floats between the 36 values of tiles: at distances of powers of two they would meet in one place of the caches

# The map of kernels along one dimension; points 0, ±1, ±2 and infinity, as in winograd.cpp.
_G = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)


class WinogradConv2d(nn.Conv2d):
    """A 3×3 convolution with stride 1 and padding 1, computed tile by tile; for float32 on the CPU."""

    def forward(self, x: Tensor) -> Tensor:
        if not (x.is_cpu and x.dim() == 4 and x.dtype == self.weight.dtype == torch.float32):
            return super().forward(x)
        out: Tensor = convolve(x, self.weight, self.bias)
        return out


def with_winograd(net: nn.Module) -> nn.Module:
    """Put tile by tile convolutions in the place of those that gain by them; the weights are the same tensors."""
    _function("input_tiles")  # if it cannot be compiled, nothing is changed
    for parent in list(net.modules()):
        for name, layer in parent.named_children():
            if type(layer) is nn.Conv2d and _gains(layer):
                fast = WinogradConv2d(layer.in_channels, layer.out_channels, 3, padding=1, device="meta")
                fast.weight, fast.bias = layer.weight, layer.bias
                setattr(parent, name, fast)
    return net


def _gains(layer: nn.Conv2d) -> bool:
    plain = (layer.stride, layer.padding, layer.dilation, layer.groups) == ((1, 1), (1, 1), (1, 1), 1)
    wide = min(layer.in_channels, layer.out_channels) >= GAINS
    bare = isinstance(layer.weight, nn.Parameter) and not (layer._forward_pre_hooks or layer._forward_hooks)
    return layer.kernel_size == (3, 3) and plain and wide and bare and layer.padding_mode == "zeros"


@torch.library.custom_op("condense_once::convolve", mutates_args=())
def convolve(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`x` [n, ch, h, w], `weight` [out, ch, 3, 3] and `bias` [out] to [n, out, h, w], with zeros beyond the border."""
    out, tiles, kernels = _blank(x, len(weight)), _room(x), _kernels(weight)
    products = x.new_empty(36, _tiles_of(_chunks(x)[0]), len(weight))
    for images, part in zip(_chunks(x), _chunks(out), strict=True):
        mapped = _map("input_tiles", images, tiles)
        multiplied = torch.bmm(mapped, kernels, out=products[:, : mapped.shape[1]])
        _call("output_images", multiplied, part, part.shape, multiplied.stride(0))
    return out if bias is None else out.add_(bias[:, None, None])


@torch.library.custom_op("condense_once::correlate", mutates_args=())
def correlate(x: Tensor, grad: Tensor) -> Tensor:
    """The gradient [out, ch, 3, 3] of the weight that made [n, out, h, w] of `x` [n, ch, h, w], from that of the former."""
    kernels = grad.new_zeros(36, grad.shape[1], x.shape[1])
    tiles, grad_tiles = _room(x), _room(grad)
    for images, part in zip(_chunks(x), _chunks(grad), strict=True):
        kernels.baddbmm_(_map("output_tiles", part, grad_tiles).mT, _map("input_tiles", images, tiles))
    weight = (_kernel_map().T @ kernels.flatten(1)).view(3, 3, *kernels.shape[1:]).permute(2, 3, 0, 1)
    return weight.contiguous(memory_format=torch.channels_last)


# The derivatives of the two are the two again, so that they can be differentiated as often as one likes.

_asked = threading.local()


@contextmanager
def gradients_of_images_only() -> Iterator[None]:
    """Spare the gradients of weights while the block runs backwards.

    PyTorch asks an operator of ours for the gradients of all inputs that have some, even if nobody wants those of the weights.
    """
    _asked.images_only = True
    try:
        yield
    finally:
        _asked.images_only = False


def _turned(weight: Tensor) -> Tensor:
    """Kernels turned by 180°, their channels exchanged: convolving with them takes gradients back to the input."""
    return weight.flip(2, 3).transpose(0, 1)


def _keep_convolved(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
    x, weight, bias = inputs
    ctx.save_for_backward(x, weight)
    ctx.biased = bias is not None


def _derive_convolve(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    x, weight = ctx.saved_tensors
    images, kernels, shifts = ctx.needs_input_grad
    if getattr(_asked, "images_only", False):
        kernels = shifts = False
    return (
        convolve(grad, _turned(weight), None) if images else None,
        correlate(x, grad) if kernels else None,
        _sums(grad) if shifts else None,
    )


def _keep_correlated(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _derive_correlate(ctx: Any, weight: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, grad = ctx.saved_tensors
    images, gradients = ctx.needs_input_grad
    return (
        convolve(grad, _turned(weight), None) if images else None,
        convolve(x, weight, None) if gradients else None,
    )


@torch.library.custom_op("condense_once::sums", mutates_args=())
def _sums(grad: Tensor) -> Tensor:
    """Over images and pixels; an operator of its own, for the compiler would make other code for other batch sizes."""
    return grad.sum((0, 2, 3))


@convolve.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return _blank(x, len(weight))


@correlate.register_fake
def _(x: Tensor, grad: Tensor) -> Tensor:
    return grad.new_empty(grad.shape[1], 3, 3, x.shape[1]).permute(0, 3, 1, 2)


@_sums.register_fake
def _(grad: Tensor) -> Tensor:
    return grad.new_empty(grad.shape[1])


convolve.register_autograd(_derive_convolve, setup_context=_keep_convolved)
correlate.register_autograd(_derive_correlate, setup_context=_keep_correlated)
_sums.register_autograd(
    lambda ctx, total: total[None, :, None, None].expand(ctx.shape),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "shape", inputs[0].shape),
)


def _blank(x: Tensor, channels: int) -> Tensor:
    """Room for images like these with other channels."""
    n, _, height, width = x.shape
    return x.new_empty(n, height, width, channels).permute(0, 3, 1, 2)


def _tiles_of(images: Tensor) -> int:
    n, _, height, width = images.shape
    return n * -(-height // 4) * -(-width // 4)


def _chunks(images: Tensor) -> tuple[Tensor, ...]:
    return torch.split(images, max(TILES // max(_tiles_of(images[:1]), 1), 1))


def _room(images: Tensor) -> Tensor:
    """For the tiles of one chunk after the other; to make room anew for each would take a tenth longer."""
    return images.new_empty(36, _tiles_of(_chunks(images)[0]) * images.shape[1] + APART)


def _map(mapping: str, images: Tensor, room: Tensor) -> Tensor:
    """Images [n, ch, h, w] mapped to tiles [36, tiles, ch]."""
    count, channels = _tiles_of(images), images.shape[1]
    images = images.contiguous(memory_format=torch.channels_last)
    _call(mapping, images, room, images.shape, room.stride(0))
    return room[:, : count * channels].view(36, count, channels)


def _call(name: str, source: Tensor, target: Tensor, shape: torch.Size, plane: int) -> None:
    n, channels, height, width = shape
    arrays = source.data_ptr(), target.data_ptr()
    _function(name)(*arrays, n, height, width, channels, plane, torch.get_num_threads())


def _function(name: str) -> Callable[..., None]:
    return function("winograd.cpp", name, POINTER, POINTER, *[SIZE] * 5, ctypes.c_int)


def _kernels(weight: Tensor) -> Tensor:
    """[out, ch, 3, 3] mapped to [36, ch, out]."""
    out, channels = weight.shape[:2]
    return (_kernel_map() @ weight.permute(2, 3, 1, 0).reshape(9, -1)).view(36, channels, out)


@cache
def _kernel_map() -> Tensor:
    """Both dimensions at once: [36, 9]."""
    along = torch.tensor(_G)
    return torch.kron(along, along)
