from __future__ import annotations

import numpy as np
import pytest

from condense_once.condensing.real_images import nearest_to_centroids
from condense_once.data.split import rows_by_class
from condense_once.train.batches import ShuffledBatches


def test_an_epoch_of_batches_has_every_row_once_but_for_the_short_rest() -> None:
    rows = np.arange(100, 110)
    batches = ShuffledBatches(rows, 3, 0, "test")
    assert batches.per_epoch == 3
    for epoch in range(2):
        seen = np.concatenate([batches[3 * epoch + place] for place in range(3)])
        assert len(set(seen.tolist())) == 9
        assert set(seen.tolist()) <= set(rows.tolist())


def test_batches_are_shuffled_anew_every_epoch_and_by_their_number_alone() -> None:
    rows = np.arange(64)
    batches, again = ShuffledBatches(rows, 32, 0, "test"), ShuffledBatches(rows, 32, 0, "test")
    assert not np.array_equal(batches[0], batches[2])
    assert np.array_equal(again[2], batches[2])  # without having gone through those before
    assert not np.array_equal(batches[0], ShuffledBatches(rows, 32, 1, "test")[0])


def test_fewer_rows_than_a_batch_are_one_batch() -> None:
    assert sorted(ShuffledBatches(np.array([4, 7]), 64, 0, "test")[5].tolist()) == [4, 7]


def test_representatives_are_the_nearest_to_the_centre_of_each_cluster(rng: np.random.Generator) -> None:
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    points = np.concatenate([centre + rng.normal(size=(9, 2)) for centre in centres]).astype(np.float32)
    expected = []
    for cluster in range(3):
        members = range(9 * cluster, 9 * cluster + 9)
        mean = [sum(float(points[m][d]) for m in members) / 9 for d in range(2)]
        expected.append(min(members, key=lambda m: sum((float(points[m][d]) - mean[d]) ** 2 for d in range(2))))
    assert nearest_to_centroids(points, 3, np.random.default_rng(0)).tolist() == expected


@pytest.mark.parametrize("count", [1, 5])
def test_there_are_as_many_representatives_as_asked_for_and_none_twice(count: int, rng: np.random.Generator) -> None:
    found = nearest_to_centroids(np.zeros((5, 2), np.float32), count, rng)
    assert len(set(found.tolist())) == count


def test_rows_by_class_keep_the_order_of_the_dataset() -> None:
    assert [rows.tolist() for rows in rows_by_class(np.array([2, 0, 2, 0]), 3)] == [[1, 3], [], [0, 2]]
