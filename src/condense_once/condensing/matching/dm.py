"""DM (Zhao & Bilen, Dataset Condensation with Distribution Matching, 2023)."""

from __future__ import annotations

from condense_once.augment.names import without
from condense_once.condensing.matching.dsa import STRATEGY
from condense_once.condensing.matching.method import LEARNING_RATES, matching
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, PRESETS, CondenserInfo, Preset
from condense_once.nets import Shape

MANY_IMAGES = 100  # per class: from here on, DM's image learning rate for CIFAR-10 is 10


def dm(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """Match the mean features of each class in untrained networks: first-order only, so steps are cheap."""
    return MatchingRecipe(
        method="dm",
        space="normalised",
        init="random",
        distance="features",
        iterations=20_000,
        steps=1,
        image_lr=1.0 if ipc < MANY_IMAGES else 10.0,
        real_batch=256,
        max_patches=256,
        augmentation=STRATEGY,
        single_op=True,
    )


CONDENSERS.add(
    CondenserInfo("dm", "mean features of untrained networks: cheap steps", matching(dm), resume_with=LEARNING_RATES)
)
for _dataset, _shape in (("svhn", (3, 32, 32)), ("mnist", (1, 28, 28))):
    _overrides = {"augmentation": without(STRATEGY, "flip")}  # a mirrored digit is another one
    PRESETS.add(Preset(f"dm-{_dataset}", f"DM's settings for {_dataset}, without flips", "dm", _overrides, _shape))
PRESETS.add(
    Preset(
        "dm-cifar100",
        "DM's settings for CIFAR-100: one image learning rate for every size",
        "dm",
        {"image_lr": 1.0},
    )
)
