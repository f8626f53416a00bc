"""Ready-made condensed sets. Their names work wherever condense-once takes a file."""

from __future__ import annotations

from pathlib import Path

from condense_once.condensed.bundled import BundledSet

FOLDER = Path(__file__).parent

CIFAR10_TGDD_IPC10 = BundledSet(
    "cifar10-tgdd-ipc10",
    "CIFAR-10 condensed by tgdd to 10 images per class, factor 2, ranked: strongest whole",
    FOLDER,
)
