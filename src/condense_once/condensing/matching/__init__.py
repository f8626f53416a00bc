"""Matching methods: IDC, DREAM, MDC, DC, DSA and DM, over one loop. Importing a method registers it."""

from condense_once.condensing.matching import dc, dm, dream, dsa, idc, mdc

__all__ = ["dc", "dm", "dream", "dsa", "idc", "mdc"]
