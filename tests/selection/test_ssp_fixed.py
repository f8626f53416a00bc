"""SSP as the authors run it, against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.condensed.verify import verify
from condense_once.selection.rule import Rule
from condense_once.selection.select import apply_rule
from condense_once.selection.selectors.ssp_fixed import ssp_fixed_rows

FEATURES = np.random.default_rng(4).normal(size=(60, 3)).astype(np.float32)


def plain_rows(features: NDArray[np.float32], count: int, rng: np.random.Generator) -> list[int]:
    points = [[float(value) for value in row] for row in features]
    centres = [points[row] for row in rng.integers(len(points), size=count)]
    for _ in range(100):
        members: list[list[list[float]]] = [[] for _ in range(count)]
        for point in points:
            members[min(range(count), key=lambda k: math.dist(point, centres[k]))].append(point)
        moved = [
            [sum(column) / len(some) for column in zip(*some, strict=True)] if some else [0.0] * len(points[0])
            for some in members
        ]
        shift = sum(math.dist(one, other) ** 2 for one, other in zip(moved, centres, strict=True))
        centres = moved
        if shift <= 1e-4:
            break
    return sorted(
        min(range(len(points)), key=lambda row: round(math.dist(points[row], centre), 7)) for centre in centres
    )


@pytest.mark.parametrize(("count", "seed"), [(1, 0), (5, 1), (30, 2), (50, 3)])
def test_it_keeps_the_nearest_to_each_centre_as_plain_loops_do(count: int, seed: int) -> None:
    found = ssp_fixed_rows(FEATURES, count, np.random.default_rng(seed))
    assert found.tolist() == plain_rows(FEATURES, count, np.random.default_rng(seed))


def test_patches_are_kept_more_than_once() -> None:
    found = ssp_fixed_rows(FEATURES, 30, np.random.default_rng(0))
    assert len(found) == 30
    assert len(set(found.tolist())) < 30


def test_a_cluster_without_members_is_centred_at_zero() -> None:
    """Both seeds are copies of one point, so one cluster is empty, and the patch nearest to zero is kept for it."""
    points = np.array([[5.0], [5.0], [5.0], [5.0], [1.0]])
    found = {tuple(ssp_fixed_rows(points, 2, np.random.default_rng(seed)).tolist()) for seed in range(30)}
    assert any(4 in rows for rows in found)
    assert all(rows[0] in (0, 4) for rows in found)  # of equals the first


def test_all_patches_are_kept_once_each() -> None:
    assert ssp_fixed_rows(FEATURES, 60, np.random.default_rng(0)).tolist() == list(range(60))
    assert ssp_fixed_rows(FEATURES, 0, np.random.default_rng(0)).tolist() == []


def made() -> CondensedSet:
    rng = np.random.default_rng(0)
    return CondensedSet(
        cells=rng.integers(0, 256, (60, 3, 2, 2), dtype=np.uint8),
        labels=np.repeat([0, 1, 2], 20),
        classes=("ant", "bee", "cat"),
        size=(2, 2),
        factor=1,
        space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        origin=np.arange(60),
    )


def test_balanced_it_repeats_within_classes() -> None:
    rows = Rule.parse("ssp-fixed-balanced").rows(made(), 30, features=FEATURES)
    assert np.bincount(rows // 20).tolist() == [10, 10, 10]
    assert len(np.unique(rows)) < 30


def test_a_set_with_repeated_patches_says_so_and_passes_verification() -> None:
    small = apply_rule(made(), Rule.parse("ssp-fixed"), Budget(total=30), features=FEATURES)
    assert small.provenance["kept"]["repeated"] == 30 - len(np.unique(small.origin)) > 0
    levels = {finding.text: finding.level for finding in verify(small)}
    assert levels["Some patches occur more than once (same origin)."] == "warning"
    silent = replace(small, provenance={"kept": {"of": 60}})
    levels = {finding.text: finding.level for finding in verify(silent)}
    assert levels["Some patches occur more than once (same origin)."] == "error"
