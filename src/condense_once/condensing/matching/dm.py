"""DM (Zhao & Bilen, Dataset Condensation with Distribution Matching, 2023)."""

from __future__ import annotations

from condense_once.condensing.matching.dsa import STRATEGY
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo
from condense_once.nets import Shape


def dm(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """Match the mean features of each class in networks that never learn: no gradient of a gradient, so steps are cheap."""
    return MatchingRecipe(
        method="dm",
        space="normalised",
        start="first",
        distance="features",
        iterations=20_000,
        steps=1,
        rate=1.0,
        real_batch=256,
        patches=256,
        augmentation=STRATEGY,
        one_change=True,
    )


DM = CONDENSERS.add(CondenserInfo("dm", "mean features in untrained networks: cheap steps", dm))
