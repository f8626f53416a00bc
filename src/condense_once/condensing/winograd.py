"""Convolutions of 3×3 as matrix products, for steps that differentiate them twice.

Winograd's F(4×4, 3×3) takes 36 multiplications for 16 outputs instead of 144. Tiles of 6×6, four apart, are brought into a
basis where convolving is multiplying entry by entry, and back: `y = S · (K ⊙ (R · x · Rᵀ)) · Sᵀ`, where R cuts and
transforms the tiles of a whole image (padding is rows that are left out), S puts them together, and K is the kernel in
that basis. All of it is matrix products, and so are its derivatives of any order, which have the same savings. Single
precision suffices (errors of 1e-4 of the values); eight bits of mantissa do not.

The loops of `condense_once.nets.winograd` do the same for training; `torch.func` cannot be traced through them (torch 2.13),
and a compiled graph of a gradient's gradient needs just that.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from condense_once.nets import Shape

TILE, STEP = 6, 4
FEWEST_CHANNELS = 16  # with fewer, transforming costs more than it saves

# Lavin & Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
_INTO = torch.tensor(
    [
        [4.0, 0.0, -5.0, 0.0, 1.0, 0.0],
        [0.0, -4.0, -4.0, 1.0, 1.0, 0.0],
        [0.0, 4.0, -4.0, -1.0, 1.0, 0.0],
        [0.0, -2.0, -1.0, 2.0, 1.0, 0.0],
        [0.0, 2.0, -1.0, -2.0, 1.0, 0.0],
        [0.0, 4.0, 0.0, -5.0, 0.0, 1.0],
    ]
)
_KERNEL = torch.tensor([[6.0, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24
_BACK = torch.tensor(
    [
        [1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
        [0.0, 1.0, -1.0, 2.0, -2.0, 0.0],
        [0.0, 1.0, 1.0, 4.0, 4.0, 0.0],
        [0.0, 1.0, -1.0, 8.0, -8.0, 1.0],
    ]
)


class WinogradConv2d(nn.Module):
    """A 3×3 convolution with stride and padding 1, for images of one size; its weights are those of another."""

    def __init__(self, conv: nn.Conv2d, size: tuple[int, int]) -> None:
        super().__init__()
        self.weight, self.bias = conv.weight, conv.bias
        (self.into_rows, self.from_rows), (self.into_columns, self.from_columns) = (
            (matrix.to(conv.weight.device) for matrix in transforms(side)) for side in size
        )
        self.kernel = torch.kron(_KERNEL, _KERNEL).to(conv.weight.device)  # [36, 9]

    def forward(self, x: Tensor) -> Tensor:  # [n, c, h, w] -> [n, o, h, w]
        count, channels, height, width = x.shape
        outputs, rows, columns = len(self.weight), len(self.into_rows), len(self.into_columns)
        lines = x.permute(2, 3, 0, 1).reshape(height, -1)  # images inside, so that no product has to be rearranged
        tiles = (self.into_rows @ lines).reshape(rows, width, count * channels)
        tiles = torch.matmul(self.into_columns, tiles).reshape(TILE, rows // TILE, TILE, -1, channels)
        kernel = self.kernel @ self.weight.permute(2, 3, 1, 0).reshape(9, -1)
        products = torch.matmul(tiles, kernel.reshape(TILE, 1, TILE, channels, outputs))
        lines = torch.matmul(self.from_columns, products.reshape(rows, columns, -1)).reshape(rows, -1)
        y = (self.from_rows @ lines).reshape(height, width, count, outputs).permute(2, 3, 0, 1)
        return y if self.bias is None else y + self.bias[:, None, None]


def transforms(side: int) -> tuple[Tensor, Tensor]:
    """The matrices R `[6·t, side]` and S `[side, 6·t]` for t tiles along a side, ordered by place in the tile first."""
    tiles = -(-side // STEP)
    into, back = torch.zeros(TILE, tiles, side), torch.zeros(side, TILE, tiles)
    for tile in range(tiles):
        for place in range(TILE):
            line = STEP * tile + place - 1  # of padding 1, nothing is read
            if 0 <= line < side:
                into[:, tile, line] = _INTO[:, place]
        made = min(STEP, side - STEP * tile)
        back[STEP * tile : STEP * tile + made, :, tile] = _BACK[:made]
    return into.flatten(0, 1), back.flatten(1, 2)


def with_fast_convolutions(net: nn.Module, shape: Shape) -> nn.Module:
    """A copy of a network that computes the same, its 3×3 convolutions by Winograd's way; parameters keep their names."""
    twin: nn.Module = copy.deepcopy(net).eval()
    sizes: dict[str, tuple[int, int]] = {}

    def note(name: str) -> Any:
        return lambda _, inputs: sizes.update({name: (inputs[0].shape[2], inputs[0].shape[3])})

    fitting = {name: layer for name, layer in twin.named_modules() if isinstance(layer, nn.Conv2d) and _fits(layer)}
    hooks = [layer.register_forward_pre_hook(note(name)) for name, layer in fitting.items()]
    with torch.no_grad():
        twin(torch.zeros(1, *shape, device=next(twin.parameters()).device))
    for hook in hooks:
        hook.remove()
    for name, size in sizes.items():
        twin.set_submodule(name, WinogradConv2d(fitting[name], size))
    return twin


def _fits(conv: nn.Conv2d) -> bool:
    plain = (conv.stride, conv.dilation, conv.groups, conv.padding_mode) == ((1, 1), (1, 1), 1, "zeros")
    return (
        type(conv) is nn.Conv2d
        and plain
        and conv.kernel_size == (3, 3)
        and conv.padding == (1, 1)
        and conv.in_channels >= FEWEST_CHANNELS
    )
