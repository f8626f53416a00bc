"""Kernel ridge regression in double precision, with a check that its solution has any correct digits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from condense_once.errors import BadOption

MAX_CONDITION = 1e13  # of the system that is solved; double precision has sixteen digits


def predict(between: Tensor, among: Tensor, labels: Tensor, ridge: float) -> Tensor:
    """Predictions `[m, C]` for m inputs, from their kernel with n support inputs and that `among` these.

    K_ts (K_ss + ridge·tr(K_ss)/n·I)⁻¹ y, with `between` = K_ts [m, n], `among` = K_ss [n, n] and `labels` = y [n, C].
    """
    count = len(among)
    system = among + ridge * among.diagonal().mean() * torch.eye(count, dtype=among.dtype, device=among.device)
    factor, failed = torch.linalg.cholesky_ex(system)
    diagonal = factor.diagonal().detach()
    condition = float((diagonal.max() / diagonal.min().clamp(min=1e-300)).square())  # a lower bound
    if int(failed) or not condition < MAX_CONDITION:
        known = "" if int(failed) else f" (condition number {condition:.1e} or more)"
        raise BadOption(
            f"The kernel matrix of the {count} patches is singular to working precision{known}: some of them are nearly the same,"
            f" or their values overflow; raise the recipe's ridge (now {ridge:g}) or lower its image_lr in `overrides`."
        )
    return between @ torch.cholesky_solve(labels, factor)


def regression_loss(
    between: Tensor, among: Tensor, labels: Tensor, targets: Tensor, ridge: float, prefixes: Sequence[Tensor]
) -> Tensor:
    """½ ‖targets − predictions‖² of an input on average, and on average over `prefixes`, the rows of support that predict.

    The kernels are computed once; each prefix only solves for itself.
    """
    losses = [
        (predict(between[:, rows], among[rows][:, rows], labels[rows], ridge) - targets).square().sum(1).mean() / 2
        for rows in prefixes
    ]
    return torch.stack(losses).mean()


def centred_one_hot(labels: Tensor, classes: int) -> Tensor:
    """One-hot rows `[n, C]` minus their mean, as KIP's labels are.

    >>> centred_one_hot(torch.tensor([1]), 4).tolist()
    [[-0.25, 0.75, -0.25, -0.25]]
    """
    return torch.nn.functional.one_hot(labels, classes).double() - 1 / classes
