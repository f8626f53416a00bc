from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.selection.rank import rank_by_scores

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed, so the page's scripts are not run")


def small_set(
    counts: tuple[int, ...] = (5, 3, 8), factor: int = 1, seed: int = 0, classes: tuple[str, ...] = ()
) -> CondensedSet:
    """Classes of different sizes, scores with ties, origins in no order."""
    rng = np.random.default_rng(seed)
    total = sum(counts)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return CondensedSet(
        cells=rng.integers(0, 256, (total, 3, 4, 4)).astype(np.uint8),
        labels=labels,
        classes=classes or tuple(f"class {label}" for label in range(len(counts))),
        size=(4 * factor, 4 * factor),
        factor=factor,
        space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        origin=rng.permutation(total),
        scores={
            "lbpe": rng.integers(0, 6, total).astype(np.float32) / 8,
            "aum": rng.integers(-3, 3, total).astype(np.float32),
        },
        name="small",
    )


def ranked_set(prefer: str = "easy", balanced: bool = True, **options: object) -> CondensedSet:
    return rank_by_scores(small_set(**options), "lbpe", prefer=prefer, balanced=balanced)  # type: ignore[arg-type]


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    return tmp_path / "page.html"
