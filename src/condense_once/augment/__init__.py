"""Differentiable augmentation: parameters are sampled first and applied later, so two batches can share them."""

from condense_once.augment.augmenter import Augmenter, make_augmenter
from condense_once.augment.cutmix import CutMix, Mix, mixed_cross_entropy
from condense_once.augment.imagenet import ImageNetAugmentation, ImageNetParams
from condense_once.augment.strategy import Augmentation, Params, SingleAugmentation

__all__ = [
    "Augmentation",
    "Augmenter",
    "CutMix",
    "ImageNetAugmentation",
    "ImageNetParams",
    "Mix",
    "Params",
    "SingleAugmentation",
    "make_augmenter",
    "mixed_cross_entropy",
]
