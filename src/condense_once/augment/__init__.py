"""Differentiable augmentation: parameters are sampled first and applied later, so two batches can share them."""

from typing import TYPE_CHECKING

from condense_once.lazy import lazy_names

if TYPE_CHECKING:
    from condense_once.augment.augmenter import Augmenter as Augmenter
    from condense_once.augment.augmenter import make_augmenter as make_augmenter
    from condense_once.augment.cutmix import CutMix as CutMix
    from condense_once.augment.cutmix import Mix as Mix
    from condense_once.augment.cutmix import mixed_cross_entropy as mixed_cross_entropy
    from condense_once.augment.cutmix import mixed_squared_error as mixed_squared_error
    from condense_once.augment.imagenet import ImageNetAugmentation as ImageNetAugmentation
    from condense_once.augment.imagenet import ImageNetParams as ImageNetParams
    from condense_once.augment.strategy import Augmentation as Augmentation
    from condense_once.augment.strategy import Params as Params
    from condense_once.augment.strategy import SingleAugmentation as SingleAugmentation

_HOMES = {
    "Augmentation": "strategy",
    "Augmenter": "augmenter",
    "CutMix": "cutmix",
    "ImageNetAugmentation": "imagenet",
    "ImageNetParams": "imagenet",
    "Mix": "cutmix",
    "Params": "strategy",
    "SingleAugmentation": "strategy",
    "make_augmenter": "augmenter",
    "mixed_cross_entropy": "cutmix",
    "mixed_squared_error": "cutmix",
}
__all__ = [*_HOMES]
__getattr__ = lazy_names(__name__, _HOMES)
