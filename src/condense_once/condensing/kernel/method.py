"""What the kernel methods register: a recipe for the images at hand, and a builder that is imported to run it."""

from __future__ import annotations

from condense_once.condensing.kernel.recipe import KernelRecipe
from condense_once.condensing.registry import CONDENSERS, PRESETS, CondenserInfo, Preset
from condense_once.nets.registry import Shape
from condense_once.registry import Lazy

RESUME_WITH = frozenset({"image_lr", "label_lr", "ridge"})  # what a resumed run may change


def kip(shape: Shape, ipc: int, factor: int) -> KernelRecipe:
    """Regress in the features of ten ConvNets that learn from the set, as FRePo does."""
    return KernelRecipe(
        method="kip",
        init="first",
        iterations=100_000,
        steps=1,
        image_lr=3e-3,
        final_lr=0.05,
        real_batch=1024,
    )


CONDENSERS.add(
    CondenserInfo(
        "kip",
        "kernel ridge regression on the set predicts real images; learned labels and ZCA by `--override`",
        Lazy("condense_once.condensing.kernel.build:build_kernel"),
        resume_with=RESUME_WITH,
    )
)
for preset in (
    Preset(
        "kip-ntk",
        "KIP with the tangent kernel of a fully connected network of infinite width, on ZCA-whitened images",
        "kip",
        {"kernel": "ntk", "space": "zca", "image_lr": 0.01, "real_batch": 2000, "iterations": 20_000},
    ),
    Preset(
        "kip-labels",
        "KIP with learned labels, on ZCA-whitened images",
        "kip",
        {"space": "zca", "label_lr": 3e-3},
    ),
):
    PRESETS.add(preset)
