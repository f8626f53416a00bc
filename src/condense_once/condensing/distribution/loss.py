"""The losses of distribution matching: pure functions of features and logits, per class.

Every loss is a sum over classes of what concerns that class alone, so classes can be computed apart and distributed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def prefix_means(features: Tensor, prefixes: Sequence[int]) -> Tensor:
    """Means `[C, P, d]` of the first so many patches of each class, for every prefix, from one cumulative sum.

    >>> features = torch.tensor([[[1.0], [3.0], [5.0]]])
    >>> prefix_means(features, [1, 3]).tolist()
    [[[1.0], [3.0]]]
    """
    counts = torch.tensor(prefixes, device=features.device)
    return features.cumsum(1)[:, counts - 1] / counts[:, None]


def mean_distance(targets: Tensor, features: Tensor, prefixes: Sequence[int]) -> Tensor:
    """‖target − mean‖² of each class `[C]`, averaged over the prefixes of its patches.

    `targets` are the mean features of real images, `[C, d]`, `features` those of synthetic patches in rank order, `[C, n, d]`.
    """
    return (prefix_means(features, prefixes) - targets[:, None]).square().sum(2).mean(1)


def class_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of each class's patches `[C]`, from `logits` [C, n, k] and the classes' `labels` [C]."""
    each, patches, _ = logits.shape
    loss = cross_entropy(logits.flatten(0, 1), labels.repeat_interleave(patches), reduction="none")
    return loss.view(each, patches).mean(1)
