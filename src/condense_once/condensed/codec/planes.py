"""Coefficients in bit planes, from the largest step to the smallest: the symbols that a chunk holds.

In each plane a coefficient that is zero so far becomes +1, −1 or stays zero (a digit 0, 1 or 2); of all others one more bit of
their magnitude follows. Four digits make a byte, which LZMA compresses; bits are packed eight to a byte.
"""

from __future__ import annotations

import lzma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadFile

DIGITS = 4  # to a byte, base 3
BASE = 3
FILTERS: list[dict[str, Any]] = [
    {"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 65536, "lc": 0, "lp": 0, "pb": 0}
]
_WEIGHTS = BASE ** np.arange(DIGITS)
# The four digits of each byte, as one number of 32 bits
_UNPACKED = (np.arange(256)[:, None] // _WEIGHTS % BASE).astype(np.int8).view(np.int32).ravel()


class Planes:
    """The coefficients `[coefficients, n]` of some patches, as far as their planes are known."""

    def __init__(self, coefficients: int, patches: int) -> None:
        self._shape = (coefficients, patches)
        self._zero = np.arange(
            coefficients * patches, dtype=np.int32
        )  # places of those that are zero so far, ascending
        # places, magnitudes in steps of the last plane, and signs of all others, in the order in which they appeared
        self._found = np.empty(0, np.int32)
        self._magnitude = np.empty(0, np.int32)
        self._sign = np.empty(0, np.int32)

    def read(self, digits: memoryview, bits: memoryview) -> tuple[int, int]:
        """Read the next plane and return how many bytes of each were used.

        The digits begin with the number of coefficients, by frequency, after which the plane holds no new ones.
        """
        if len(digits) < 4:
            raise BadFile("a plane is missing.")
        last = int.from_bytes(digits[:4], "little")
        if last > self._shape[0]:
            raise BadFile("a plane is longer than a cell.")
        count = int(np.searchsorted(self._zero, last * self._shape[1]))
        packed = np.frombuffer(digits[4 : 4 + -(-count // DIGITS)], np.uint8)
        raw = np.frombuffer(bits[: -(-len(self._found) // 8)], np.uint8)
        if len(packed) * DIGITS < count or len(raw) * 8 < len(self._found):
            raise BadFile("a plane is cut short.")
        if len(packed) and packed.max() >= BASE**DIGITS:
            raise BadFile("a plane holds digits that there are none of.")
        digit = _UNPACKED.take(packed).view(np.int8)[:count]
        is_new = digit != 0
        at = np.flatnonzero(is_new)
        refined = 2 * self._magnitude + np.unpackbits(raw, count=len(self._found))
        self._magnitude = np.concatenate([refined, np.ones(len(at), np.int32)])
        self._sign = np.concatenate([self._sign, 3 - 2 * digit[at].astype(np.int32)])
        self._found = np.concatenate([self._found, self._zero[at]])
        self._zero = np.concatenate([self._zero[:count][~is_new], self._zero[count:]])
        return 4 + len(packed), len(raw)

    def values(self, steps: NDArray[np.int64]) -> NDArray[np.int32]:
        """Coefficients for the steps `[coefficients]` of the last plane: seven sixteenths into each interval."""
        step = steps.astype(np.int32)[self._found // self._shape[1]]
        values = np.zeros(self._shape[0] * self._shape[1], np.int32)
        values[self._found] = self._sign * (self._magnitude * step + (step * 7 >> 4))
        return values.reshape(self._shape)


def plane_symbols(magnitude: NDArray[np.int64], negative: NDArray[np.bool_], shift: int) -> tuple[bytes, bytes]:
    """Digits and bits of the plane whose step is 2^shift times the smallest; magnitudes are in smallest steps."""
    now = magnitude >> shift
    is_new = now == 1
    rows = np.flatnonzero(is_new.any(axis=1))
    last = int(rows[-1]) + 1 if len(rows) else 0
    digit = np.where(is_new, np.where(negative, 2, 1), 0)[:last][now[:last] < 2]
    padded = np.concatenate([digit, np.zeros(-len(digit) % DIGITS, np.int64)]).reshape(-1, DIGITS)
    old = now[now > 1]
    in_order = np.argsort(-np.frexp(old)[1], kind="stable")  # those with more bits appeared in earlier planes
    packed = (padded @ _WEIGHTS).astype(np.uint8).tobytes()
    return last.to_bytes(4, "little") + packed, np.packbits((old & 1)[in_order].astype(np.uint8)).tobytes()


def compress(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=FILTERS)


def decompress(data: memoryview, limit: int) -> bytes:
    """At most `limit` bytes of what was compressed."""
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=FILTERS).decompress(data, limit)
    except (lzma.LZMAError, EOFError):
        raise BadFile("a chunk cannot be decompressed.") from None
