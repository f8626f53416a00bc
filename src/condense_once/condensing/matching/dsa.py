"""DSA (Zhao & Bilen, Dataset Condensation with Differentiable Siamese Augmentation, 2021)."""

from __future__ import annotations

from dataclasses import replace

from condense_once.augment.names import without
from condense_once.condensing.matching.dc import dc
from condense_once.condensing.matching.method import LEARNING_RATES, matching
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, PRESETS, CondenserInfo, Preset
from condense_once.nets import Shape

STRATEGY = "color_crop_cutout_flip_scale_rotate"  # one of these operations per step


def dsa(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """DC from real images, with siamese augmentation."""
    return replace(
        dc(shape, ipc, factor),
        method="dsa",
        init="random",
        augmentation=STRATEGY,
        single_op=True,
        net_augmentation=STRATEGY,
    )


CONDENSERS.add(
    CondenserInfo("dsa", "DC from real images with siamese augmentation", matching(dsa), resume_with=LEARNING_RATES)
)
for _dataset, _shape in (("svhn", (3, 32, 32)), ("mnist", (1, 28, 28))):
    _no_flip = without(STRATEGY, "flip")  # a mirrored digit is another one
    _overrides = {"augmentation": _no_flip, "net_augmentation": _no_flip}
    PRESETS.add(Preset(f"dsa-{_dataset}", f"DSA's settings for {_dataset}, without flips", "dsa", _overrides, _shape))
