"""DREAM (Liu et al., Efficient Dataset Distillation by Representative Matching, 2023): IDC on representative images."""

from __future__ import annotations

from dataclasses import replace

from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.method import LEARNING_RATES, matching
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, PRESETS, CondenserInfo, Preset, mosaic_factor
from condense_once.nets import Shape


def dream(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """IDC, but the initial images and the real batches are nearest to k-means centroids.

    A batch is selected among all images of its class, in the features of the current network, and kept for ten steps.

    >>> recipe = dream((3, 32, 32), 10, 2)
    >>> recipe.real_batch, recipe.net_batch
    (128, 128)
    """
    return replace(
        idc(shape, ipc, factor),
        method="dream",
        init="representatives",
        real_batch=128,
        net_batch=128,  # one loader serves matching and network updates
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
PRESETS.add(
    Preset(
        "dream-cifar100",
        "DREAM's settings for CIFAR-100: normalised like CIFAR-10",
        "dream",
        like="cifar10",
    )
)
