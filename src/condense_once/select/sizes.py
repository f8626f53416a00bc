"""The sizes that people ask for first."""

from __future__ import annotations

from collections.abc import Iterator

STEPS = (1, 2, 5)  # … 10, 20, 50, 100, …


def usual_sizes(below: float) -> Iterator[int]:
    """Images a class, from one up to less than those that a set has.

    >>> list(usual_sizes(10)), list(usual_sizes(50))
    ([1, 2, 5], [1, 2, 5, 10, 20])
    """
    ten = 1
    while True:
        for step in STEPS:
            if step * ten >= below:
                return
            yield step * ten
        ten *= 10
