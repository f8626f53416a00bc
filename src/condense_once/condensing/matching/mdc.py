"""MDC (He et al., Multisize Dataset Condensation, 2024): IDC with a loss on the subset that has most to learn."""

from __future__ import annotations

from dataclasses import replace

from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.method import LEARNING_RATES, matching
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo, mosaic_factor
from condense_once.nets import Shape


def mdc(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """IDC, where the first images of every class are to be a good set, too: see `adaptive_subset`.

    All images are decoded alike, since a subset has all patches of its images.

    >>> mdc((3, 32, 32), 10, 2).subset_period
    100
    """
    return replace(idc(shape, ipc, factor), method="mdc", decode="single", subset_period=100)


CONDENSERS.add(
    CondenserInfo(
        "mdc",
        "IDC with a loss on the first images of each class: every size is a good set",
        matching(mdc),
        factor=mosaic_factor,
        resume_with=LEARNING_RATES,
    )
)
