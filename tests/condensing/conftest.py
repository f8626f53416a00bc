from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def short() -> Callable[[str], dict[str, Any]]:
    return quick_overrides


def quick_overrides(method: str) -> dict[str, Any]:
    """Overrides that make any method's recipe quick."""
    overrides: dict[str, Any] = {"iterations": 2, "steps": 3, "real_batch": 6, "net_batch": 8}
    if method in ("idc", "dream"):
        overrides |= {"net_images": 16, "image_lr": 0.05}  # images so small hardly change at the paper's rate
    if method in ("dc", "dsa"):
        overrides["net_epochs"] = 2
    if method == "dream":
        overrides["reselect_every"] = 2
    return overrides
