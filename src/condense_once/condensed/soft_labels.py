"""Soft labels: a vector for every patch instead of a class, and what a network is trained towards. numpy only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet

LabelKind = Literal["probabilities", "logits", "regression"]
LABEL_KINDS: tuple[LabelKind, ...] = get_args(LabelKind)
LabelUse = Literal["soft", "hard"]  # which labels to train on
Loss = Literal["cross_entropy", "mse"]
SUM_TOLERANCE = 1e-3  # of probabilities; 8 bits are rounded more coarsely, but their file says what they are
Floats = NDArray[np.float32]


class Targets(NamedTuple):
    """What a network is trained towards, `[n, C]`, and by which loss."""

    values: Floats
    loss: Loss


def infer_kind(soft: Floats) -> LabelKind:
    """`probabilities` if the rows are such, otherwise `regression`.

    >>> infer_kind(np.float32([[0.2, 0.8]])), infer_kind(np.float32([[-0.2, 0.8]]))
    ('probabilities', 'regression')
    """
    sums_to_one = np.abs(soft.sum(1) - 1) <= SUM_TOLERANCE
    return "probabilities" if bool(sums_to_one.all() and (soft >= 0).all()) else "regression"


def check_label_use(labels: str | None, data: CondensedSet) -> LabelUse:
    """The labels to train on: by default soft ones, where a set has them and they are no vectors to regress on.

    Such vectors were fitted to a kernel; networks trained by gradient descent learn more from the classes of KIP's published set.
    """
    if labels not in (None, *get_args(LabelUse)):
        raise BadOption(f"`labels` must be soft or hard, not {labels!r}.")
    if data.soft_labels is None:
        if labels == "soft":
            raise BadOption(f"{data.name} has no soft labels; leave out `labels`.")
        return "hard"
    if labels is None:
        return "hard" if data.label_kind == "regression" else "soft"
    return "soft" if labels == "soft" else "hard"


def targets_of(data: CondensedSet) -> Targets | None:
    """The targets by a set's soft labels, if it has any.

    Probabilities and the softmax of logits are for the cross-entropy. Other vectors are regressed on; they are divided by one
    number, the root mean square of their entries, which is far from one where kernels made them (19 for KIP's). Kernel ridge
    regression is linear in its labels, so the classes that it predicts stay the same.
    """
    soft = data.soft_labels
    if soft is None:
        return None
    if data.label_kind == "probabilities":
        return Targets(soft / soft.sum(1, keepdims=True), "cross_entropy")
    if data.label_kind == "logits":
        powers = np.exp(soft - soft.max(1, keepdims=True))
        return Targets(powers / powers.sum(1, keepdims=True), "cross_entropy")
    scale = np.sqrt(np.square(soft, dtype=np.float64).mean())
    return Targets((soft / max(scale, 1e-12)).astype(np.float32), "mse")


def of_classes(soft: Floats, kind: LabelKind, classes: NDArray[np.int64]) -> Floats:
    """The entries of some classes; probabilities are divided by their new sum."""
    kept: Floats = soft[:, classes]
    return kept / kept.sum(1, keepdims=True).clip(min=1e-12) if kind == "probabilities" else kept
