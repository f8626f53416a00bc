from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from condense_once.data.source import ArraySplit, Source


def tiny_source(classes: int = 3, each: int = 20, side: int = 8, channels: int = 3) -> Source:
    """Classes that can be told apart: each has a pattern of its own under noise."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(classes), each))
    patterns = rng.integers(0, 156, (classes, channels, side, side))
    images = (patterns[labels] + rng.integers(0, 100, (len(labels), channels, side, side))).astype(np.uint8)
    names = tuple(f"class {label}" for label in range(classes))
    return Source("tiny", names, (0.5,) * channels, (0.25,) * channels, {"train": ArraySplit(images, labels)})


@pytest.fixture
def source() -> Source:
    return tiny_source()


@pytest.fixture
def make_source() -> Callable[..., Source]:
    return tiny_source


@pytest.fixture
def short() -> Callable[[str], dict[str, Any]]:
    return quick_changes


def quick_changes(method: str) -> dict[str, Any]:
    """Changes that make any method's recipe quick."""
    changes: dict[str, Any] = {"iterations": 2, "steps": 3, "real_batch": 6, "net_batch": 8}
    if method in ("idc", "dream"):
        changes |= {"lesson_images": 16, "rate": 0.05}  # images so small would hardly move by the paper's rate
    if method in ("dc", "dsa"):
        changes["lesson_epochs"] = 2
    if method == "dream":
        changes["keep_batch"] = 2
    return changes
