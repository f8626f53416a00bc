"""Gradients of the loss for all weights of a network: of every patch by itself, and of averages. Exact, by autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from condense_once.train.images import Images

BATCH = 100  # images that pass through the network at once

Loss = Callable[[Tensor, Tensor], Tensor]  # of logits [n, C] and labels [n], averaged


def squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """½‖p − y‖², the mean over patches: the loss of the paper's proof of lemma 1.

    >>> squared_error(torch.zeros(1, 2), torch.tensor([0])).item()  # ½ (¼ + ¼)
    0.25
    """
    errors = logits.softmax(1) - one_hot(labels, logits.shape[1])
    return 0.5 * errors.square().sum(1).mean()


LOSSES: Mapping[str, Loss] = {"cross-entropy": cross_entropy, "mse": squared_error}


def mean_gradient(net: nn.Module, images: Images, labels: Tensor, loss: Loss = cross_entropy) -> Tensor:
    """The gradient of the mean loss of these images, `[P]`; the network is in evaluation mode."""
    total = torch.zeros(sum(weight.numel() for weight in net.parameters()))
    for at in range(0, len(labels), BATCH):
        part = labels[at : at + BATCH]
        total += _gradient(net, loss(net(images[at : at + BATCH]), part)) * (len(part) / len(labels))
    return total


def leave_one_out_changes(
    net: nn.Module, images: Images, labels: Tensor, loss: Loss = cross_entropy
) -> NDArray[np.float64]:
    """‖g − g₋ⱼ‖₂ of every patch j, `[n]`: how much the gradient of the mean loss changes when the patch is left out.

    With gⱼ the gradient of one patch and g that of all n, g₋ⱼ = (n·g − gⱼ) / (n − 1), so g − g₋ⱼ = (gⱼ − g) / (n − 1).
    """
    whole, count = mean_gradient(net, images, labels, loss), len(labels)
    changes = np.empty(count)
    for row in range(count):
        own = _gradient(net, loss(net(images[row : row + 1]), labels[row : row + 1]))
        changes[row] = float((own - whole).double().norm()) / (count - 1)
    return changes


def prediction_errors(net: nn.Module, images: Images, labels: Tensor) -> NDArray[np.float64]:
    """‖p − y‖₂ of every patch under the current weights, `[n]`: the paper's LBPE at one time, without augmentation."""
    with torch.no_grad():
        parts = [net(images[at : at + BATCH]).double() for at in range(0, len(labels), BATCH)]
    logits = torch.cat(parts)
    errors: NDArray[np.float64] = (logits.softmax(1) - one_hot(labels, logits.shape[1])).norm(dim=1).numpy()
    return errors


def cosine(one: Tensor, other: Tensor) -> float:
    """The cosine of the angle between two gradients; 0 if one of them vanishes."""
    lengths = float(one.double().norm() * other.double().norm())
    return float(one.double() @ other.double()) / lengths if lengths else 0.0


def spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Rank correlation; equal values share the mean of their ranks.

    >>> spearman(np.array([1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.0]))
    1.0
    """
    first, second = (_ranks(values) - (len(values) - 1) / 2 for values in (one, other))
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return round(float(first @ second) / lengths, 12) if lengths else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts + 1) / 2)[which]
    return ranks


def _gradient(net: nn.Module, loss: Tensor) -> Tensor:
    parts = torch.autograd.grad(loss, list(net.parameters()))
    return torch.cat([part.reshape(-1) for part in parts]).cpu()
