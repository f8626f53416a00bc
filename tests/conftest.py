from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without
torch.set_num_threads(1)  # test processes share the cores; threads that wait for each other are slower than one

CLASSES = ("ant", "bee", "cat")


@pytest.fixture
def shared_data() -> Path:
    """Published sets and samples that may lie beside a checkout; tests that need them are skipped elsewhere."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared data beside this checkout")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def pixel_set(rng: np.random.Generator) -> CondensedSet:
    """Three classes, two images each in no particular order, factor 2."""
    return CondensedSet.from_mosaics(
        rng.integers(0, 256, (6, 3, 8, 8), dtype=np.uint8),
        np.array([2, 0, 1, 1, 0, 2]),
        factor=2,
        space=Space("pixels", (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)),
        classes=CLASSES,
        name="tiny",
        provenance={"made by": "a test"},
    )


@pytest.fixture
def soft_set(rng: np.random.Generator) -> CondensedSet:
    """Normalised floats with soft labels, values far outside what a pixel can reach."""
    soft = rng.normal(size=(5, 3)).astype(np.float32)
    return CondensedSet.from_mosaics(
        (7 * rng.normal(size=(5, 1, 6, 6))).astype(np.float32),
        soft.argmax(1),
        factor=1,
        space=Space("normalised", (0.3,), (0.4,)),
        classes=CLASSES,
        soft_labels=soft,
        name="soft",
    )
