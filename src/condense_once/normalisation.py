"""Which mean and std can be those of pixels in 0…1."""

from __future__ import annotations

from collections.abc import Sequence

LIMIT = 1e6  # far beyond any pixel, far below what overflows in float32


def is_normalisation(mean: Sequence[float], std: Sequence[float]) -> bool:
    """Whether images can be normalised with these without overflow.

    >>> is_normalisation((0.5,), (0.25,)), is_normalisation((1e308,), (1.0,)), is_normalisation((0.5,), (0.0,))
    (True, False, False)
    """
    return all(abs(one) <= LIMIT for one in mean) and all(1 / LIMIT <= one <= LIMIT for one in std)
