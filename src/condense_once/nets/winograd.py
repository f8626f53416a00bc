"""3×3 convolutions by Winograd's minimal filtering: the same result with a quarter of the multiplications.

An output tile of 4×4 pixels needs an input tile of 6×6. Small fixed matrices map tiles and kernels to 36 values each, where to
convolve is to multiply: 36 products take the place of 144 = 16 · 9 (Lavin and Gray, "Fast algorithms for convolutional neural
networks", 2016, F(4×4, 3×3)). The mapping costs little once it is compiled to loops over channels; eager it would cost more than
is gained. In float32 the result differs from that of a direct convolution by about 3e-6 of its norm.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as fn
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

TILE = 4  # pixels a side of an output tile
GAINS = 32  # channels in and out from which a convolution gains by it


class WinogradConv2d(nn.Conv2d):
    """A 3×3 convolution with stride 1 and padding 1, computed tile by tile in compiled code and as any other elsewhere."""

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            return super().forward(x)
        out: Tensor = _Winograd.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return out if self.bias is None else out + self.bias[:, None, None]


def with_winograd(net: nn.Module) -> nn.Module:
    """Put tile by tile convolutions in the place of those that gain by them; the weights are the same tensors."""
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
    return layer.kernel_size == (3, 3) and plain and wide and layer.padding_mode == "zeros"


class _Winograd(torch.autograd.Function):
    """`x` [n, ch, h, w] and `weight` [out, ch, 3, 3] to [n, out, h, w]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        tiles = _input_tiles(x)
        ctx.save_for_backward(tiles, weight)
        return _images(tiles @ _kernels(weight).mT, x.shape)

    @staticmethod
    @once_differentiable  # the tiles kept here do not remember where they came from
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        tiles, weight = ctx.saved_tensors
        grad_weight = _weights(_output_tiles(grad).mT @ tiles)
        # the gradient of the input is a convolution too, with kernels turned by 180° and their channels exchanged
        return _images(_input_tiles(grad) @ _kernels(weight.flip(2, 3)), grad.shape), grad_weight


# From images to tiles and back. P = n · tiles is the number of tiles, and the 36 values of a tile come first: [36, P, ch].


def _input_tiles(x: Tensor) -> Tensor:
    """Overlapping 6×6 tiles, mapped."""
    n, channels, height, width = x.shape
    down, across = -(-height // TILE), -(-width // TILE)
    x = fn.pad(x.permute(0, 2, 3, 1), (0, 0, 1, TILE * across - width + 1, 1, TILE * down - height + 1))
    rows = _map_input(*(x[:, k : k + TILE * (down - 1) + 1 : TILE] for k in range(6)))
    columns = ([row[:, :, k : k + TILE * (across - 1) + 1 : TILE] for k in range(6)] for row in rows)
    return torch.stack([value for six in columns for value in _map_input(*six)]).view(36, n * down * across, channels)


def _images(products: Tensor, shape: torch.Size) -> Tensor:
    """The images that mapped output tiles stand for; `shape` is that of the input, of which the channels do not matter."""
    n, _, height, width = shape
    channels, down, across = products.shape[2], -(-height // TILE), -(-width // TILE)
    values = products.view(6, 6, n, down, across, channels)
    rows = [torch.stack(_map_output(*row.unbind(0)), 3) for row in _map_output(*values.unbind(0))]  # [n, d, a, 4, ch]
    images = torch.stack(rows, 2).view(n, TILE * down, TILE * across, channels)
    return images[:, :height, :width].permute(0, 3, 1, 2)


def _output_tiles(grad: Tensor) -> Tensor:
    """Gradients of output tiles, taken back through the map of outputs."""
    n, channels, height, width = grad.shape
    down, across = -(-height // TILE), -(-width // TILE)
    grad = fn.pad(grad.permute(0, 2, 3, 1), (0, 0, 0, TILE * across - width, 0, TILE * down - height))
    rows = _unmap_output(*grad.view(n, down, TILE, across, TILE, channels).unbind(2))
    values = [value for row in rows for value in _unmap_output(*row.unbind(3))]
    return torch.stack(values).view(36, n * down * across, channels)


def _kernels(weight: Tensor) -> Tensor:
    """[out, ch, 3, 3] mapped to [36, out, ch]."""
    return torch.stack([value for row in _map_kernel(*weight.unbind(2)) for value in _map_kernel(*row.unbind(2))])


def _weights(grad: Tensor) -> Tensor:
    """The gradient [36, out, ch] of mapped kernels, taken back to [out, ch, 3, 3]."""
    rows = _unmap_kernel(*grad.view(6, 6, *grad.shape[1:]).unbind(0))
    return torch.stack([torch.stack(_unmap_kernel(*row.unbind(0)), 1) for row in rows], 1).permute(0, 3, 1, 2)


# The fixed matrices, one dimension at a time, with their common terms taken out. Points 0, ±1, ±2 and infinity.


def _map_input(d0: Tensor, d1: Tensor, d2: Tensor, d3: Tensor, d4: Tensor, d5: Tensor) -> tuple[Tensor, ...]:
    even, odd, even2, odd2 = d4 - 4 * d2, d3 - 4 * d1, d4 - d2, 2 * (d3 - d1)
    return 4 * d0 - 5 * d2 + d4, even + odd, even - odd, even2 + odd2, even2 - odd2, 4 * d1 - 5 * d3 + d5


def _map_output(m0: Tensor, m1: Tensor, m2: Tensor, m3: Tensor, m4: Tensor, m5: Tensor) -> tuple[Tensor, ...]:
    sum1, difference1, sum2, difference2 = m1 + m2, m1 - m2, m3 + m4, m3 - m4
    return m0 + sum1 + sum2, difference1 + 2 * difference2, sum1 + 4 * sum2, difference1 + 8 * difference2 + m5


def _unmap_output(y0: Tensor, y1: Tensor, y2: Tensor, y3: Tensor) -> tuple[Tensor, ...]:
    even, odd, even2, odd2 = y0 + y2, y1 + y3, y0 + 4 * y2, 2 * y1 + 8 * y3
    return y0, even + odd, even - odd, even2 + odd2, even2 - odd2, y3


def _map_kernel(g0: Tensor, g1: Tensor, g2: Tensor) -> tuple[Tensor, ...]:
    even, odd, even2, odd2 = (g0 + g2) / -6, g1 / 6, g0 / 24 + g2 / 6, g1 / 12
    return g0 / 4, even - odd, even + odd, even2 + odd2, even2 - odd2, g2


def _unmap_kernel(u0: Tensor, u1: Tensor, u2: Tensor, u3: Tensor, u4: Tensor, u5: Tensor) -> tuple[Tensor, ...]:
    even, odd, even2, odd2 = (u1 + u2) / -6, (u2 - u1) / 6, u3 + u4, (u3 - u4) / 12
    return u0 / 4 + even + even2 / 24, odd + odd2, even + even2 / 6 + u5
