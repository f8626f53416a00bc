"""TGDD: distribution matching guided by training trajectories (2026)."""

from __future__ import annotations

from condense_once.condensing.distribution.method import RESUME_WITH, distribution
from condense_once.condensing.distribution.recipe import DistributionRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo, mosaic_factor
from condense_once.nets.registry import Shape


def tgdd(shape: Shape, ipc: int, factor: int) -> DistributionRecipe:
    """Match mean features in snapshots of five experts; a snapshot up to six epochs later must recognise every patch."""
    return DistributionRecipe(
        method="tgdd",
        init="first",
        iterations=10_000,
        steps=1,
        image_lr=0.01 * ipc,
        cross_entropy=2.5 if ipc <= 10 else 0.5,  # the paper's; its program has 1.0
        ahead=6,
        real_batch=128,
        max_patches=200,
        experts=5,
        expert_epochs=60,
    )


CONDENSERS.add(
    CondenserInfo(
        "tgdd",
        "mean features along training trajectories, with cross-entropy: strong sets in minutes",
        distribution(tgdd),
        factor=mosaic_factor,
        resume_with=RESUME_WITH,
    )
)
