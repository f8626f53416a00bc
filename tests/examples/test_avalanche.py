"""The orders of our exemplar policies; the policies themselves where Avalanche is installed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from examples.avalanche.orders import easy_first, rows_to_keep

from condense_once import load

needs_avalanche = "avalanche-lib is not installed, or lacks torchvision: its classes are not tested"


def test_the_order_is_that_of_el2n_easy_first(rng: np.random.Generator) -> None:
    logits, labels = rng.normal(size=(20, 4)).astype(np.float32), rng.integers(0, 4, 20)
    probabilities = torch.softmax(torch.from_numpy(logits), 1).numpy()
    error = np.linalg.norm(probabilities - np.eye(4)[labels], axis=1)
    assert sorted(easy_first(logits, labels)) == list(range(20))
    assert (np.diff(error[easy_first(logits, labels)]) >= 0).all()


def test_a_smaller_memory_keeps_prefixes_of_what_a_larger_one_kept() -> None:
    data = load("cifar10-idc-ipc10")
    large, small = rows_to_keep(data, [4, 9, 0], 60), rows_to_keep(data, [4, 9, 0], 7)
    for label, count in ((4, 3), (9, 2), (0, 2)):
        of_class = [row for row in large if data.labels[row] == label]
        assert [row for row in small if data.labels[row] == label] == of_class[:count]
    assert len(rows_to_keep(data, [], 60)) == len(rows_to_keep(data, [1], 0)) == 0


def test_a_buffer_of_avalanche_follows_new_classes_and_sizes() -> None:
    pytest.importorskip("avalanche", reason=needs_avalanche, exc_type=ImportError)
    from examples.avalanche.policies import RankedSetBuffer

    buffer = RankedSetBuffer(8, load("cifar10-idc-ipc10"))
    for classes, counts in (([2, 5], {2: 4, 5: 4}), ([7, 0], {2: 2, 5: 2, 7: 2, 0: 2})):
        buffer.update(SimpleNamespace(experience=SimpleNamespace(classes_in_this_experience=classes)))
        assert {label: list(buffer.buffer.targets).count(label) for label in counts} == counts
    buffer.resize(None, 4)
    assert len(buffer.buffer) == 4
    assert buffer.buffer[0][0].shape == (3, 32, 32)


def test_a_selection_strategy_of_avalanche_sorts_its_data() -> None:
    pytest.importorskip("avalanche", reason=needs_avalanche, exc_type=ImportError)
    from avalanche.benchmarks.utils import _make_taskaware_tensor_classification_dataset
    from examples.avalanche.policies import EasyFirstSelectionStrategy

    labels = [0, 1, 0, 1]
    data = _make_taskaware_tensor_classification_dataset(torch.eye(4)[:, :2], labels, task_labels=0, targets=labels)
    strategy = SimpleNamespace(model=torch.nn.Identity(), eval_mb_size=3, device="cpu")
    order = EasyFirstSelectionStrategy().make_sorted_indices(strategy, data)
    assert sorted(order) == [0, 1, 2, 3]
    assert set(order[:2]) == {0, 1}  # rows whose own logit is highest
