"""The orders of our exemplar policies; the policies themselves where Avalanche is installed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from examples.avalanche.orders import easy_first, rows_to_keep

from condense_once import load, open_source

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


@pytest.mark.filterwarnings("default")  # of Avalanche, whose own plugin calls what it deprecates
@pytest.mark.parametrize("condensed", [True, False])
def test_a_strategy_of_avalanche_replays_classes_of_every_task_so_far(condensed: bool) -> None:
    pytest.importorskip("avalanche", reason=needs_avalanche, exc_type=ImportError)
    from avalanche.benchmarks import nc_benchmark
    from avalanche.benchmarks.utils import _make_taskaware_tensor_classification_dataset
    from avalanche.training.plugins import ReplayPlugin
    from avalanche.training.storage_policy import ParametricBuffer
    from avalanche.training.supervised import Naive
    from examples.avalanche.policies import EasyFirstSelectionStrategy, RankedSetBuffer

    data, test = load("cifar10-idc-ipc10"), open_source("cifar10-sample").test
    pixels = test.take(slice(200)).astype(np.float32) / 255
    images, labels = torch.from_numpy(data.space.to_network(pixels)), test.labels[:200].tolist()
    tasks = _make_taskaware_tensor_classification_dataset(images, labels, task_labels=0, targets=labels)
    order = [3, 1, 4, 5, 9, 2, 6, 8, 7, 0]
    stream = nc_benchmark(tasks, tasks, n_experiences=5, task_labels=False, fixed_class_order=order).train_stream
    real = ParametricBuffer(40, groupby="class", selection_strategy=EasyFirstSelectionStrategy())
    buffer = RankedSetBuffer(40, data) if condensed else real
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    strategy = Naive(
        model=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.01),
        criterion=torch.nn.CrossEntropyLoss(),
        train_mb_size=16,
        plugins=[ReplayPlugin(mem_size=40, storage_policy=buffer)],
        evaluator=None,
    )
    for number, experience in enumerate(stream, start=1):
        strategy.train(experience)
        targets = [int(target) for target in buffer.buffer.targets]
        assert set(targets) == set(order[: 2 * number])
        assert len(targets) <= 40
    assert [targets.count(label) for label in order] == [4] * 10
