from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condense_once.errors import BadOption
from condense_once.kmeans import k_means
from condense_once.metrics.ssp import ssp


def distance(one: list[float], other: list[float]) -> float:
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


@st.composite
def clouds(draw: st.DrawFn) -> tuple[Any, int, int]:
    """Points on a small grid, so that many are copies of others; a number of clusters; a seed."""
    n = draw(st.integers(1, 20))
    points = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 4, (n, 2)).astype(np.float32)
    return points, draw(st.integers(1, n)), draw(st.integers(0, 99))


@settings(deadline=None)  # the machine may be busy
@given(clouds())
def test_clusters_are_what_they_say(cloud: tuple[Any, int, int]) -> None:
    points, k, seed = cloud
    made = k_means(points, k, np.random.default_rng(seed))
    plain, members = points.tolist(), made.members.tolist()
    assert sorted(set(members)) == list(range(k))  # none is empty, not even among copies
    for cluster in range(k):
        own = [p for p, m in zip(plain, members, strict=True) if m == cluster]
        middle = [math.fsum(column) / len(own) for column in zip(*own, strict=True)]
        assert made.centres[cluster].tolist() == pytest.approx(middle)
    centres = made.centres.tolist()
    for p, m, gap in zip(plain, members, made.distances.tolist(), strict=True):
        assert gap == pytest.approx(distance(p, centres[m]), abs=1e-6)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(0, 2**32), st.integers(1, 30))
def test_every_point_is_with_the_nearest_centre(seed: int, k: int) -> None:
    points = np.random.default_rng(seed).normal(size=(40, 3))
    made = k_means(points, k, np.random.default_rng(seed))
    for p, gap in zip(points.tolist(), made.distances.tolist(), strict=True):
        assert gap == pytest.approx(min(distance(p, centre) for centre in made.centres.tolist()))


@given(st.integers(0, 2**32))
def test_the_order_of_the_points_changes_nothing(seed: int) -> None:
    """Points of a grid, of which many have the same sum of coordinates."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (20, 3)).astype(np.float64)
    order = rng.permutation(20)
    plain, shuffled = (k_means(p, 5, np.random.default_rng(seed)) for p in (points, points[order]))
    np.testing.assert_array_equal(plain.members[order], shuffled.members)


def test_clouds_that_lie_apart_are_found(rng: np.random.Generator) -> None:
    middles = np.array([[0, 0], [50, 0], [0, 50], [50, 50]])
    labels = rng.integers(0, 4, 100)
    points = middles[labels] + rng.normal(size=(100, 2))
    made = k_means(points, 4, rng)
    assert len({(int(label), int(member)) for label, member in zip(labels, made.members, strict=True)}) == 4
    scores = ssp(points, 4, rng)
    for label in range(4):
        own = points[labels == label].tolist()
        middle = [math.fsum(column) / len(own) for column in zip(*own, strict=True)]
        np.testing.assert_allclose(scores[labels == label], [distance(p, middle) for p in own], rtol=1e-5)


def test_one_cluster_a_point_leaves_no_distance_and_the_seed_decides(rng: np.random.Generator) -> None:
    points = rng.normal(size=(30, 3))
    np.testing.assert_allclose(ssp(points, 30, rng), 0, atol=1e-7)
    one, again, other = (ssp(points, 5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@pytest.mark.parametrize("k", [0, 5])
def test_there_are_at_most_as_many_clusters_as_points(k: int) -> None:
    with pytest.raises(BadOption, match=rf"^4 points cannot form {k} clusters; pass `k` from 1 to 4\.$"):
        ssp(np.ones((4, 2)), k, np.random.default_rng(0))
