"""DREAM (Liu et al., Efficient Dataset Distillation by Representative Matching, 2023): IDC on representative images."""

from __future__ import annotations

from dataclasses import replace

from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.method import LEARNING_RATES, matching
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo, mosaic_factor
from condense_once.nets import Shape


def dream(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """IDC, but the initial images and the real batches are nearest to k-means centroids.

    A batch is selected among all images of its class, in the features of the current network, and kept for ten steps.

    >>> dream((3, 32, 32), 10, 2).real_batch
    128
    """
    return replace(
        idc(shape, ipc, factor),
        method="dream",
        init="representatives",
        real_batch=128,
        reselect_every=10,
        pretrain_epochs=0,
    )


CONDENSERS.add(
    CondenserInfo(
        "dream",
        "IDC, matched with k-means representatives of each class",
        matching(dream),
        factor=mosaic_factor,
        resume_with=LEARNING_RATES,
    )
)
