"""IDC (Kim et al., Dataset Condensation via Efficient Synthetic-Data Parameterization, 2022)."""

from __future__ import annotations

from dataclasses import replace

from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo
from condense_once.nets import Shape, is_large

BASE_SIDE = 32  # IDC's base size, of which its learning rates speak; 28 for grey images, 224 for large ones


def idc(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """Match the gradients of the convolutions, with a network that learns from real images between the steps.

    IDC scales its rate by IPC / 10 and by the area of the image, for the gradient of a mean over many patches is small.

    >>> [round(idc((3, 32, 32), ipc, 2).rate, 6) for ipc in (1, 10, 20, 50)]
    [0.0005, 0.005, 0.01, 0.025]
    >>> round(idc((3, 224, 224), 20, 3).rate, 6)
    0.006
    """
    channels, height, width = shape
    base = MatchingRecipe(
        method="idc",
        space="pixels",
        start="first",
        distance="mse",
        iterations=2000,
        steps=100,
        rate=5e-3 * _scale(ipc, height * width, BASE_SIDE),
        glide=True,
        augmentation="color_crop_cutout",
        lessons="real",
        lesson_images=2000,
        net_augmentation="color_crop",  # no cutout where there is CutMix
        net_cutmix=0.5,
    )
    if is_large(shape):
        return replace(
            base,
            distance="l1",
            iterations=500,
            rate=3e-3 * _scale(ipc, height * width, 224),
            decode="bound" if factor >= 3 and ipc >= 20 else "single",  # to limit memory
            lesson_images=500,
            early=10,
            net_cutmix=1.0,
        )
    if channels == 1:
        return replace(base, distance="l1", rate=1e-4 * _scale(ipc, height * width, 28), lesson_images=500)
    return base


def _scale(ipc: int, area: int, base_side: int) -> float:
    return ipc / 10 * area / base_side**2


IDC = CONDENSERS.add(
    CondenserInfo(
        "idc",
        "gradients of convolutions, mosaics of patches, a network that learns from real images",
        idc,
        mosaics=True,
    )
)
