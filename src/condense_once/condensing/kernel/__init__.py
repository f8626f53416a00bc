"""Kernel regression: a set is good if kernel ridge regression on it predicts real images. Importing it registers `kip`."""

from condense_once.condensing.kernel import method

__all__ = ["method"]
