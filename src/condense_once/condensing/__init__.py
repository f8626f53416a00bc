"""Making condensed sets from real images: a runner, and families of condensers that it runs."""

from condense_once.condensing import distribution, kernel, matching, mtt  # register their methods
from condense_once.condensing.registry import CONDENSERS, PRESETS

__all__ = ["CONDENSERS", "PRESETS", "distribution", "kernel", "matching", "mtt"]
