"""A student: a few SGD steps on synthetic images, differentiated for the images and for the step size.

The student starts from an expert's weights θ₀ and makes N steps θᵢ₊₁ = θᵢ − α ∇ℓᵢ(θᵢ, x). The loss is how far it ends from
where the expert is later, θ*, relative to the way from θ₀: ‖θ_N − θ*‖² / ‖θ₀ − θ*‖².
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from condense_once.augment import Params
from condense_once.nets.native import gradients_of_images_only

Weights = Mapping[str, Tensor]


class StudentBatch(NamedTuple):
    """What one step trains on."""

    rows: Tensor  # [b] of the patches
    labels: Tensor  # [b]
    params: Params  # of the augmentation, one row per patch

    def split(self, most: int) -> Iterator[StudentBatch]:
        """Parts of at most so many patches."""
        for at in range(0, len(self.rows), most):
            part = slice(at, at + most)
            params = Params(*(None if values is None else values[part] for values in self.params))
            yield StudentBatch(self.rows[part], self.labels[part], params)


class Matched(NamedTuple):
    """A student's loss and its gradients."""

    loss: Tensor
    patches: Tensor  # [n, ch, h, w], the gradient for each patch
    lr: Tensor  # the gradient for the step size


# The mean cross-entropy of a network with these weights on the patches `x` of a batch, which it augments.
BatchLoss = Callable[[Weights, Tensor, StudentBatch], Tensor]


def trajectory_loss(student: Weights, start: Weights, target: Weights) -> Tensor:
    """‖student − target‖² / ‖start − target‖², over all weights.

    >>> at = lambda *values: {"weight": torch.tensor(values)}
    >>> float(trajectory_loss(at(1.0, 3.0), at(0.0, 0.0), at(3.0, 4.0)))
    0.20000000298023224
    """
    return _squared_distance(student, target) / _squared_distance(start, target)


def match_with_stored_graph(
    loss: BatchLoss, start: Weights, target: Weights, patches: Tensor, lr: Tensor, batches: Sequence[StudentBatch]
) -> Matched:
    """By autograd through all steps: memory grows with their number."""
    patches, lr = patches.detach().requires_grad_(), lr.detach().requires_grad_()
    weights = _leaves(start)
    for batch in batches:
        value = loss(weights, patches[batch.rows], batch)
        gradient = torch.autograd.grad(value, list(weights.values()), create_graph=True, materialize_grads=True)
        weights = {name: weight - lr * g for (name, weight), g in zip(weights.items(), gradient, strict=True)}
    value = trajectory_loss(weights, start, target)
    return Matched(value.detach(), *torch.autograd.grad(value, (patches, lr)))


def match_with_recomputation(
    loss: BatchLoss,
    start: Weights,
    target: Weights,
    patches: Tensor,
    lr: Tensor,
    batches: Sequence[StudentBatch],
    *,
    at_once: int,
) -> Matched:
    """The same in the memory of `at_once` patches of one step; every step is computed twice.

    The first pass keeps the weights before each step. The second goes back: with v the cotangent of θᵢ₊₁, that of θᵢ is
    v − α ∂s/∂θ, that of x is −α ∂s/∂x and that of α is −s, where s = ⟨∇ℓᵢ(θᵢ, x), v⟩. As ℓᵢ is a mean over patches, s is a
    sum over parts of the batch.
    """
    path = [start]
    for batch in batches:
        path.append(_step(loss, path[-1], patches, lr, batch, at_once))
    end = path.pop()
    value, scale = trajectory_loss(end, start, target), 2 / _squared_distance(start, target)
    cotangents = [scale * (end[name] - target[name]) for name in end]
    of_patches, of_lr = torch.zeros_like(patches), torch.zeros_like(lr)
    for batch, before in zip(reversed(batches), reversed(path), strict=True):
        of_weights = [torch.zeros_like(each) for each in cotangents]
        for part in batch.split(at_once):
            fraction = len(part.rows) / len(batch.rows)
            pull_back = _pull_back_to_images if before is start else _pull_back
            product, of_x, changes = pull_back(loss, before, patches[part.rows], part, cotangents)
            of_lr -= fraction * product
            of_patches.index_add_(0, part.rows, of_x, alpha=-fraction * float(lr))
            for total, change in zip(of_weights, changes, strict=True):
                total += fraction * change
        cotangents = [v - lr * change for v, change in zip(cotangents, of_weights, strict=True)]
    return Matched(value, of_patches, of_lr)


def _step(
    loss: BatchLoss, weights: Weights, patches: Tensor, lr: Tensor, batch: StudentBatch, at_once: int
) -> dict[str, Tensor]:
    """The weights after a step, without a graph."""
    moved = dict(weights)
    for part in batch.split(at_once):
        leaves = _leaves(weights)
        value = loss(leaves, patches[part.rows], part) * (len(part.rows) / len(batch.rows))
        gradient = torch.autograd.grad(value, list(leaves.values()), materialize_grads=True)
        moved = {name: weight - lr * g for (name, weight), g in zip(moved.items(), gradient, strict=True)}
    return moved


def _pull_back(
    loss: BatchLoss, weights: Weights, x: Tensor, batch: StudentBatch, cotangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """The product s = ⟨∇ℓ, v⟩ and its gradients for the patches and for the weights."""
    leaves, x = _leaves(weights), x.detach().requires_grad_()
    product = _product(loss, leaves, x, batch, cotangents)
    of_x, *of_weights = torch.autograd.grad(product, (x, *leaves.values()), materialize_grads=True)
    return product.detach(), of_x, of_weights


def _pull_back_to_images(
    loss: BatchLoss, weights: Weights, x: Tensor, batch: StudentBatch, cotangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """The same at the first weights, whose gradients are of no use: zeros."""
    x = x.detach().requires_grad_()
    product = _product(loss, _leaves(weights), x, batch, cotangents)
    with gradients_of_images_only():
        (of_x,) = torch.autograd.grad(product, x)
    return product.detach(), of_x, [torch.zeros_like(each) for each in cotangents]


def _product(loss: BatchLoss, leaves: Weights, x: Tensor, batch: StudentBatch, cotangents: Sequence[Tensor]) -> Tensor:
    value = loss(leaves, x, batch)
    gradient = torch.autograd.grad(value, list(leaves.values()), create_graph=True, materialize_grads=True)
    return torch.stack([(g * v).sum() for g, v in zip(gradient, cotangents, strict=True)]).sum()


def _leaves(weights: Weights) -> dict[str, Tensor]:
    return {name: weight.detach().requires_grad_() for name, weight in weights.items()}


def _squared_distance(one: Weights, other: Weights) -> Tensor:
    return torch.stack([(one[name] - other[name]).square().sum() for name in one]).sum()
