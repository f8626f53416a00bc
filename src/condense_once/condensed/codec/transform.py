"""Cells ⇄ coefficients: opponent colours, then the DCT of blocks of 8×8. Decoding is integer arithmetic, the same everywhere.

Matrix products run in 64-bit floats, which hold every integer in them exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

SIDE = 8  # of a block
FRACTION_BITS = 4  # of coefficients
TABLE_BITS = 12  # of the entries of the DCT matrix
MIDDLE = 128  # of pixels
# Columns of the inverse colour transform have different lengths; colour differences get twice the step of brightness.
COLOUR_WEIGHTS = (3**-0.5, 2 * 2**-0.5, 2 * 3**-0.5)


def dct_table() -> NDArray[np.float64]:
    """The orthonormal DCT-II of 8 samples in units of 2⁻¹², rounded to integers: frequency × sample.

    >>> dct_table()[:2].astype(int).tolist()
    [[1448, 1448, 1448, 1448, 1448, 1448, 1448, 1448], [2009, 1703, 1138, 400, -400, -1138, -1703, -2009]]
    """
    frequency, sample = np.arange(SIDE)[:, None], np.arange(SIDE)
    table = np.cos(np.pi * (2 * sample + 1) * frequency / (2 * SIDE)) / 2
    table[0] = SIDE**-0.5
    rounded: NDArray[np.float64] = np.rint(table * 2**TABLE_BITS).astype(np.float64)
    return rounded


@cache
def diagonal_order() -> list[int]:
    """The places of a block by diagonals, lowest frequencies first; within a diagonal from the top.

    >>> diagonal_order()[:6]
    [0, 1, 8, 2, 9, 16]
    """
    return sorted(range(SIDE**2), key=lambda place: (place // SIDE + place % SIDE, place))


@cache
def _basis() -> NDArray[np.float64]:
    """Both axes at once: the 64 samples of a block × its 64 coefficients."""
    basis: NDArray[np.float64] = np.kron(dct_table(), dct_table()).T.astype(np.float64)
    return basis


@dataclass(frozen=True)
class Transform:
    """The shape of a cell, whether its channels become opponent colours, and what its numbers mean."""

    shape: tuple[int, int, int]  # channels, height, width
    opponent: bool
    exponent: int | None  # samples are values · 2^exponent; None: pixels, samples around 128

    @property
    def blocks(self) -> tuple[int, int]:
        """Rows and columns of blocks."""
        return -(-self.shape[1] // SIDE), -(-self.shape[2] // SIDE)

    @property
    def coefficients(self) -> int:
        """How many there are of a cell."""
        return self.shape[0] * self.blocks[0] * self.blocks[1] * SIDE**2

    @property
    def components(self) -> NDArray[np.int64]:
        """The channel or colour that each coefficient belongs to, `[coefficients]`."""
        each = np.repeat(np.arange(self.shape[0]), self.blocks[0] * self.blocks[1])
        return np.tile(each, SIDE**2)

    def forward(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """Coefficients `[coefficients, n]` of cells `[n, ch, h, w]`: by frequency, then component, then block."""
        samples = cells.astype(np.float64)
        samples = samples - MIDDLE if self.exponent is None else samples * 2.0**self.exponent
        if self.opponent:
            red, green, blue = samples.transpose(1, 0, 2, 3)
            luma = (red + 2 * green + blue) / 4
            samples = np.stack([luma, (red - blue) / 2, green - luma], axis=1)
        (down, across), (channels, height, width) = self.blocks, self.shape
        padding = ((0, 0), (0, 0), (0, down * SIDE - height), (0, across * SIDE - width))
        grid = np.pad(samples, padding, "edge").reshape(-1, channels, down, SIDE, across, SIDE)
        table = dct_table() / 2**TABLE_BITS
        places = table @ grid.transpose(0, 1, 2, 4, 3, 5) @ table.T * 2**FRACTION_BITS
        ordered = places.reshape(len(cells), -1, SIDE**2)[:, :, diagonal_order()]
        flat: NDArray[np.float64] = ordered.transpose(2, 1, 0).reshape(-1, len(cells))
        return flat

    def inverse(self, coefficients: NDArray[np.int32]) -> NDArray[Any]:
        """Cells `[n, ch, h, w]` of coefficients: pixels in 8 bits, or values as 32-bit floats."""
        (down, across), (channels, height, width), count = self.blocks, self.shape, coefficients.shape[1]
        places = np.empty((SIDE**2, coefficients.shape[0] // SIDE**2 * count))
        places[diagonal_order()] = coefficients.reshape(SIDE**2, -1)
        shift = 2 * TABLE_BITS + FRACTION_BITS
        samples = np.floor((_basis() @ places + 2 ** (shift - 1)) * 2.0**-shift).astype(np.int32)
        grid = samples.reshape(SIDE, SIDE, channels, down, across, count).transpose(5, 2, 3, 0, 4, 1)
        cells: NDArray[Any] = grid.reshape(count, channels, down * SIDE, across * SIDE)[:, :, :height, :width]
        if self.opponent:
            luma, orange, green = cells.transpose(1, 0, 2, 3)
            cells = np.stack([luma + orange - green, luma + green, luma - orange - green], axis=1)
        if self.exponent is not None:
            values: NDArray[np.float32] = cells.astype(np.float32) * np.float32(2.0**-self.exponent)
            return values
        pixels: NDArray[np.uint8] = (cells + MIDDLE).clip(0, 255).astype(np.uint8)
        return pixels
