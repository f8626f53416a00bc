"""Exact gradients and their statistics, against naive computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from condense_once.nets import make_net
from condense_once.studies.theory.gradients import (
    LOSSES,
    cosine,
    leave_one_out_changes,
    mean_gradient,
    prediction_errors,
    spearman,
)


@pytest.fixture
def net() -> nn.Module:
    return make_net("convnet-d1-w4", (3, 8, 8), 3, generator=torch.Generator().manual_seed(1)).eval()


@pytest.fixture
def images() -> Tensor:
    return torch.randn(7, 3, 8, 8, generator=torch.Generator().manual_seed(2))


LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 2])


def naive_gradient(net: nn.Module, images: Tensor, labels: Tensor, loss: str) -> Tensor:
    """Of the mean of losses that are written out, by `backward`."""
    net.zero_grad()
    total = torch.zeros(())
    for image, label in zip(images, labels.tolist(), strict=True):
        p = torch.softmax(net(image[None])[0], 0)
        if loss == "cross-entropy":
            total = total - torch.log(p[label])
        else:
            total = total + 0.5 * sum((p[k] - float(k == label)) ** 2 for k in range(3))
    (total / len(labels)).backward()
    return torch.cat([weight.grad.flatten().clone() for weight in net.parameters() if weight.grad is not None])


@pytest.mark.parametrize("loss", LOSSES)
def test_changes_are_those_of_leaving_each_patch_out(net: nn.Module, images: Tensor, loss: str) -> None:
    whole = naive_gradient(net, images, LABELS, loss)
    expected = []
    for row in range(7):
        others = [other for other in range(7) if other != row]
        without = naive_gradient(net, images[others], LABELS[others], loss)
        expected.append(float((whole - without).norm()))
    found = leave_one_out_changes(net, images, LABELS, LOSSES[loss])
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_mean_gradient_does_not_depend_on_batches(
    net: nn.Module, images: Tensor, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("condense_once.studies.theory.gradients.BATCH", 3)
    found = mean_gradient(net, images, LABELS, LOSSES[loss])
    torch.testing.assert_close(found, naive_gradient(net, images, LABELS, loss), rtol=1e-4, atol=1e-6)


def test_errors_are_distances_of_probabilities_to_labels(net: nn.Module, images: Tensor) -> None:
    p = torch.softmax(net(images).detach(), 1).tolist()
    expected = [
        sum((p[row][k] - float(k == label)) ** 2 for k in range(3)) ** 0.5 for row, label in enumerate(LABELS.tolist())
    ]
    np.testing.assert_allclose(prediction_errors(net, images, LABELS), expected, rtol=1e-5)


def test_rank_correlation_is_of_ranks_with_ties_shared() -> None:
    assert spearman(np.array([1.0, 5.0, 2.0]), np.array([-1.0, -5.0, -2.0])) == -1
    # ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / √(4.5 · 5)
    assert spearman(np.array([0.0, 1.0, 1.0, 2.0]), np.arange(4.0)) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert spearman(np.ones(4), np.arange(4.0)) == 0


def test_the_cosine_is_of_directions() -> None:
    assert cosine(torch.tensor([3.0, 0.0]), torch.tensor([5.0, 0.0])) == 1
    assert cosine(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0])) == 0
    assert cosine(torch.zeros(2), torch.ones(2)) == 0
