"""DSA (Zhao & Bilen, Dataset Condensation with Differentiable Siamese Augmentation, 2021)."""

from __future__ import annotations

from dataclasses import replace

from condense_once.condensing.matching.dc import dc
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo
from condense_once.nets import Shape

STRATEGY = "color_crop_cutout_flip_scale_rotate"  # one of these changes a step


def dsa(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """DC from real images, each step under one change that real and synthetic images share."""
    return replace(
        dc(shape, ipc, factor),
        method="dsa",
        start="first",
        augmentation=STRATEGY,
        one_change=True,
        net_augmentation=STRATEGY,
    )


DSA = CONDENSERS.add(CondenserInfo("dsa", "DC from real images, under a change that both kinds of images share", dsa))
