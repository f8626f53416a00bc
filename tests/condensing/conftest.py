from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


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
