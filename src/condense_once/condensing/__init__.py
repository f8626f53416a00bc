"""Making condensed sets from real images: IDC, DREAM, DC, DSA and DM over one matching loop."""

from condense_once.condensing.matching import dc, dm, dream, dsa, idc  # each adds itself to the registry
from condense_once.condensing.matching.presets import PRESETS, Preset
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.registry import CONDENSERS, CondenserInfo
from condense_once.condensing.runner import condense

__all__ = [
    "CONDENSERS",
    "PRESETS",
    "CondenserInfo",
    "MatchingRecipe",
    "Preset",
    "condense",
    "dc",
    "dm",
    "dream",
    "dsa",
    "idc",
]
