"""DREAM (Liu et al., Efficient Dataset Distillation by Representative Matching, 2023): IDC on the most typical images."""

from __future__ import annotations

from dataclasses import replace

from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo
from condense_once.nets import Shape


def dream(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """IDC, but both the start and the real batches are those images that k-means finds in the middle of its clusters.

    A batch is chosen among all images of its class by the features of the network as it is, and kept for ten steps.

    >>> dream((3, 32, 32), 10, 2).real_batch
    128
    """
    return replace(
        idc(shape, ipc, factor), method="dream", start="representatives", real_batch=128, keep_batch=10, early=0
    )


DREAM = CONDENSERS.add(
    CondenserInfo("dream", "IDC, matched with the most typical real images of each class", dream, mosaics=True)
)
