"""DC (Zhao et al., Dataset Condensation with Gradient Matching, 2021)."""

from __future__ import annotations

from condense_once.condensing.matching.method import LEARNING_RATES, matching
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo
from condense_once.nets import Shape

# By images per class: steps with one network, and epochs on the synthetic images between two of them.
LOOPS = {1: (1, 1), 10: (10, 50), 20: (20, 25), 30: (30, 20), 40: (40, 15), 50: (50, 10)}


def dc(shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
    """Match the gradients of all weight matrices by cosine distance; train the network on the synthetic images.

    DC defines its loops for a few numbers of images per class; others take those of the nearest.

    >>> recipe = dc((3, 32, 32), 12, 1)
    >>> recipe.steps, recipe.net_epochs
    (10, 50)
    """
    steps, epochs = LOOPS[min(LOOPS, key=lambda listed: abs(listed - ipc))]
    return MatchingRecipe(
        method="dc",
        space="normalised",
        init="noise",
        distance="cosine",
        iterations=1000,
        steps=steps,
        image_lr=0.1,
        real_batch=256,
        max_patches=256,
        net_data="synthetic",
        net_epochs=epochs,
        net_momentum=0.0,
        net_weight_decay=0.0,
        net_batch=256,
    )


CONDENSERS.add(
    CondenserInfo(
        "dc",
        "cosine gradient matching from noise; the network trains on the synthetic images",
        matching(dc),
        resume_with=LEARNING_RATES,
    )
)
