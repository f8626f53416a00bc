"""The images of a run as a condensed set that tells how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import to_uint8
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.problem import Problem
from condense_once.train.hardware import versions

CURVE = 200  # points of the loss that a file keeps, at most: its header is what every device reads
DIGITS = 5  # of each


def finished(
    problem: Problem,
    recipe: MatchingRecipe,
    mosaics: NDArray[np.float32],
    curve: Sequence[tuple[int, float]],
    told: Mapping[str, Any],
) -> CondensedSet:
    """Mosaics `[C·ipc, ch, h, w]`, class after class, as a set; pixels in 8 bits, normalised values as they are."""
    return CondensedSet.from_mosaics(
        to_uint8(mosaics) if recipe.space == "pixels" else mosaics,
        np.repeat(np.arange(problem.classes), problem.ipc),
        factor=problem.factor,
        space=problem.space(recipe),
        classes=problem.source.classes,
        name=f"{problem.source.name}-{recipe.method}-ipc{problem.ipc}",
        provenance={
            "method": recipe.method,
            "source": f"{problem.source.name}, train split",
            "recipe": asdict(recipe),
            "loss": thinned(curve, CURVE),
            "versions": versions(),
            **told,
        },
    )


def thinned(curve: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Every n-th point of a curve and its last, so that at most about so many are left, with a few digits each.

    >>> thinned([(step, step / 3) for step in range(1, 11)], 3)
    [(4, 1.3333), (8, 2.6667), (10, 3.3333)]
    """
    every = -(-len(curve) // most) if curve else 1
    kept = list(curve[every - 1 :: every])
    if curve and kept[-1] != curve[-1]:
        kept.append(curve[-1])
    return [(step, float(f"{loss:.{DIGITS}g}")) for step, loss in kept]
