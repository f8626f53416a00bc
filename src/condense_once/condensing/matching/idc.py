"""IDC (Kim et al., Dataset Condensation via Efficient Synthetic-Data Parameterization, 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from condense_once.condensing.matching.method import LEARNING_RATES, matching
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, PRESETS, CondenserInfo, Preset, mosaic_factor
from condense_once.nets import Shape, is_large

BASE_SIDE = 32  # the image side that IDC's learning rates refer to; 28 for MNIST, 224 for large images
GREY_LR = 1e-4


def idc(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """Match the gradients of the convolutions; train the network on real images between steps.

    IDC scales its image learning rate by IPC / 10 and by the image area, since the gradient of a mean over many patches is small.

    >>> [round(idc((3, 32, 32), ipc, 2).image_lr, 6) for ipc in (1, 10, 20, 50)]
    [0.0005, 0.005, 0.01, 0.025]
    >>> round(idc((3, 224, 224), 20, 3).image_lr, 6), round(idc((1, 28, 28), 10, 2).image_lr, 8)
    (0.006, 7.656e-05)
    """
    channels, height, width = shape
    base = MatchingRecipe(
        method="idc",
        space="pixels",
        init="first",
        distance="mse",
        iterations=2000,
        steps=100,
        image_lr=5e-3 * _scale(ipc, height * width, BASE_SIDE),
        idle_momentum=True,
        augmentation="color_crop_cutout",
        net_data="real",
        net_images=2000,
        net_short_batch=True,
        net_augmentation="color_crop",  # no cutout where there is CutMix
        net_cutmix=0.5,
    )
    if is_large(shape):
        return replace(
            base,
            distance="l1",
            iterations=500,
            image_lr=3e-3 * _scale(ipc, height * width, 224),
            decode="bound" if factor >= 3 and ipc >= 20 else "single",  # to limit memory
            net_images=500,
            pretrain_epochs=10,
            net_cutmix=1.0,
        )
    if channels == 1:
        image_lr = GREY_LR * _scale(ipc, height * width, BASE_SIDE)
        return replace(base, distance="l1", image_lr=image_lr, net_images=500)
    return base


def _scale(ipc: int, area: int, base_side: int) -> float:
    return ipc / 10 * area / base_side**2


def _mnist(shape: Shape, ipc: int, factor: int) -> Mapping[str, Any]:
    image_lr = {"image_lr": GREY_LR * _scale(ipc, shape[1] * shape[2], 28)}
    return image_lr | ({"augmentation": "color_crop", "net_cutmix": 0.0} if factor > 1 else {})


CONDENSERS.add(
    CondenserInfo(
        "idc",
        "gradient matching on mosaics of patches; the network trains on real images",
        matching(idc),
        factor=mosaic_factor,
        resume_with=LEARNING_RATES,
    )
)
PRESETS.add(
    Preset(
        "idc-cifar100",
        "IDC's settings for CIFAR-100: normalised like CIFAR-10",
        "idc",
        like="cifar10",
    )
)
PRESETS.add(Preset("idc-svhn", "IDC's settings for SVHN: shorter network updates", "idc", {"net_images": 500}))
PRESETS.add(
    Preset(
        "idc-mnist",
        "IDC's settings for MNIST: another image learning rate and, with mosaics, neither cutout nor CutMix",
        "idc",
        shape=(1, 28, 28),
        by_size=_mnist,
    )
)
