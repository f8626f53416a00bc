from __future__ import annotations

import numpy as np
import pytest

from condense_once.explorer.layout import map_positions, principal_components

RNG = np.random.default_rng(0)
CENTRES = np.eye(3, 8) * 20


def three_groups(each: int) -> tuple[np.ndarray, np.ndarray]:
    groups = np.tile(np.arange(3), each)
    return CENTRES[groups] + np.random.default_rng(1).normal(size=(len(groups), 8)), groups


def same_group_next_door(positions: np.ndarray, groups: np.ndarray) -> float:
    """How often the nearest neighbour on the map is of the same group."""
    distances = ((positions[:, None] - positions) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    return float((groups[distances.argmin(1)] == groups).mean())


def test_neighbours_in_features_are_neighbours_on_the_map() -> None:
    features, groups = three_groups(30)
    positions = map_positions(features)
    assert positions.min() >= 0
    assert positions.max() <= 1
    assert same_group_next_door(positions, groups) > 0.97


def test_patches_beyond_the_landmarks_lie_beside_their_like() -> None:
    features, groups = three_groups(60)
    assert same_group_next_door(map_positions(features, landmarks=45), groups) > 0.95


def test_the_same_features_give_the_same_map() -> None:
    features, _ = three_groups(10)
    np.testing.assert_array_equal(map_positions(features), map_positions(features.copy()))


@pytest.mark.parametrize("shape", [(1, 5), (2, 5), (4, 1), (12, 1)])
def test_few_patches_and_few_features_have_a_map_too(shape: tuple[int, int]) -> None:
    positions = map_positions(RNG.normal(size=shape))
    assert positions.shape == (shape[0], 2)
    assert np.isfinite(positions).all()


def test_patches_that_are_all_the_same_have_a_map_too() -> None:
    assert np.isfinite(map_positions(np.ones((20, 4)))).all()


def test_principal_components_come_by_decreasing_variance() -> None:
    points = RNG.normal(size=(200, 4)) * np.array([1.0, 5.0, 2.0, 0.1])
    spread = principal_components(points, 3).std(0)
    np.testing.assert_allclose(spread, np.sort(points.std(0))[::-1][:3], rtol=0.05)
