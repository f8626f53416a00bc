"""The papers' settings for each dataset, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from condense_once.augment.strategy import without
from condense_once.condensing.matching.dsa import STRATEGY
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS
from condense_once.errors import BadOption
from condense_once.nets import Shape, is_large
from condense_once.registry import Registry


@dataclass(frozen=True)
class Preset:
    """A method's settings for images of a dataset's kind, and what its paper changes for just this dataset."""

    name: str
    summary: str
    method: str
    shape: Shape = (3, 32, 32)  # of the dataset's images
    changes: Mapping[str, Any] = field(default_factory=dict)
    mosaics: bool = False  # whether the changes are for factors above one only

    def recipe(self, shape: Shape, ipc: int, factor: int) -> MatchingRecipe:
        if (shape[0], is_large(shape)) != (self.shape[0], is_large(self.shape)):
            its, given = ("×".join(map(str, each)) for each in (self.shape, shape))
            raise BadOption(
                f"The preset {self.name} is for images of about {its}, not of {given}; --method {self.method} takes its settings"
                " from the images."
            )
        base = CONDENSERS.get(self.method).recipe(shape, ipc, factor)
        return base if self.mosaics and factor == 1 else base.changed(self.changes)


PRESETS: Registry[Preset] = Registry("presets")

_GREY, _LARGE = (1, 28, 28), (3, 224, 224)

_DIGITS = {"augmentation": without(STRATEGY, "flip")}  # a mirrored digit is another thing
_DIGITS_DSA = {**_DIGITS, "net_augmentation": without(STRATEGY, "flip")}

for _dataset in ("cifar10", "cifar100"):
    for _method in ("idc", "dream", "dc", "dsa", "dm"):
        PRESETS.add(Preset(f"{_method}-{_dataset}", f"{_method.upper()}'s settings for {_dataset}", _method))
for _dataset, _shape in (("svhn", (3, 32, 32)), ("mnist", _GREY)):
    PRESETS.add(Preset(f"dc-{_dataset}", f"DC's settings for {_dataset}", "dc", _shape))
    PRESETS.add(Preset(f"dsa-{_dataset}", f"DSA's settings for {_dataset}, without flips", "dsa", _shape, _DIGITS_DSA))
    PRESETS.add(Preset(f"dm-{_dataset}", f"DM's settings for {_dataset}, without flips", "dm", _shape, _DIGITS))
PRESETS.add(Preset("idc-svhn", "IDC's settings for SVHN: shorter lessons", "idc", changes={"lesson_images": 500}))
PRESETS.add(
    Preset(
        "idc-mnist",
        "IDC's settings for MNIST; in mosaics neither cutout nor CutMix",
        "idc",
        _GREY,
        {"augmentation": "color_crop", "net_cutmix": 0.0},
        mosaics=True,
    )
)
PRESETS.add(Preset("idc-fashion-mnist", "IDC's settings for Fashion-MNIST", "idc", _GREY))
PRESETS.add(Preset("idc-imagenet10", "IDC's settings for ten classes of ImageNet, 224×224", "idc", _LARGE))
PRESETS.add(Preset("dream-imagenet10", "DREAM's settings for ten classes of ImageNet, 224×224", "dream", _LARGE))
