"""Lemma 1: a patch with a small prediction error changes the gradient little when it is left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from torch import nn

from condense_once.condensed.set import CondensedSet
from condense_once.metrics.config import PAPER
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.lbpe import lbpe
from condense_once.studies.theory.gradients import LOSSES, leave_one_out_changes, prediction_errors, spearman
from condense_once.studies.theory.measurement import THEORY, Chart, Measurement, Record, TheoryConfig, sized_subsets
from condense_once.studies.theory.trajectory import train_and_measure
from condense_once.train.images import training_data


def leave_one_out(data: CondensedSet, config: TheoryConfig) -> Iterator[Record]:
    """For each size, epoch and loss: the rank correlation of the change with the error then, and with the LBPE score."""
    for subset in sized_subsets(data, config):
        yield from _of_one_size(data.name, subset, config)


def _of_one_size(name: str, subset: CondensedSet, config: TheoryConfig) -> Iterator[Record]:
    prepared = training_data(subset)
    changes: dict[tuple[int, str], NDArray[np.float64]] = {}
    errors: dict[int, NDArray[np.float64]] = {}

    def measure(epoch: int, net: nn.Module) -> None:
        errors[epoch] = prediction_errors(net, prepared.images, prepared.labels)
        for loss, function in LOSSES.items():
            changes[epoch, loss] = leave_one_out_changes(net, prepared.images, prepared.labels, function)

    dynamics = train_and_measure(prepared, config, measure)
    if dynamics is None:
        score = None
    else:
        window = Epochs.top(min(PAPER.best, dynamics.epochs), among=dynamics.epochs)
        score = lbpe(dynamics.error, dynamics.correct, window).astype(np.float64)
    for (epoch, loss), change in changes.items():
        yield {
            "set": name,
            "patches": len(subset),
            "epoch": epoch,
            "loss": loss,
            "correlation with LBPE at that epoch": spearman(change, errors[epoch]),
            "correlation with the LBPE score": float("nan") if score is None else spearman(change, score),
            "largest change / smallest": float(change.max() / max(change.min(), 1e-30)),
            "mean error": float(errors[epoch].mean()),
        }


LEAVE_ONE_OUT = THEORY.add(
    Measurement(
        "leave-one-out",
        "Lemma 1: change of the gradient when a patch is left out, against its LBPE",
        "The smaller the LBPE of a patch, the less the gradient changes when the patch is left out.",
        keys=("set", "patches", "epoch", "loss"),
        values=(
            "correlation with LBPE at that epoch",
            "correlation with the LBPE score",
            "largest change / smallest",
            "mean error",
        ),
        chart=Chart("epoch", "correlation with LBPE at that epoch", lines=("loss",)),
        measure=leave_one_out,
    )
)
