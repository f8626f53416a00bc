"""Distribution matching in trained networks. Importing a method registers it."""

from condense_once.condensing.distribution import tgdd

__all__ = ["tgdd"]
