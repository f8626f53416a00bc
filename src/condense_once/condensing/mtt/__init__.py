"""Matching training trajectories. Importing the method registers it."""

from condense_once.condensing.mtt import method

__all__ = ["method"]
