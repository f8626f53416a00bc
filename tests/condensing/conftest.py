from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def experts_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a test's experts are kept in."""
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("CONDENSE_ONCE_DATA", str(folder))
    return folder / "experts"


@pytest.fixture
def short() -> Callable[[str], dict[str, Any]]:
    return quick_overrides


def quick_overrides(method: str) -> dict[str, Any]:
    """Overrides that make any method's recipe quick."""
    if method == "tgdd":
        return {"iterations": 4, "steps": 3, "real_batch": 6, "experts": 2, "expert_epochs": 2}
    if method == "mtt":
        trained = {"experts": 2, "expert_epochs": 2, "expert_batch": 20, "ahead": 1}
        return {**trained, "iterations": 8, "student_steps": 3, "student_batch": 9, "image_lr": 10.0, "lr_lr": 1e-6}
    if method == "kip":
        return {"iterations": 4, "steps": 3, "real_batch": 6, "networks": 2, "net_age": 2, "image_lr": 0.05}
    overrides: dict[str, Any] = {"iterations": 2, "steps": 3, "real_batch": 6, "net_batch": 8}
    if method in ("idc", "dream", "mdc"):
        overrides |= {"net_images": 16, "image_lr": 0.05}  # images so small hardly change at the paper's rate
    if method in ("dc", "dsa"):
        overrides["net_epochs"] = 2
    if method == "mdc":
        overrides["subset_period"] = 1
    if method == "dream":
        overrides["reselect_every"] = 2
    return overrides
