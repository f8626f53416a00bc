"""Rule 1: in small sets easy patches, in large sets hard ones should point where the whole, or the real images, point."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from condense_once.condensed.class_matching import match_classes
from condense_once.condensed.coreset import coreset
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.selection.order import Prefer, order_rows
from condense_once.studies.theory.gradients import cosine, mean_gradient, prediction_errors
from condense_once.studies.theory.measurement import THEORY, Chart, Measurement, Record, TheoryConfig, sized_subsets
from condense_once.studies.theory.trajectory import train_and_measure
from condense_once.train.images import TrainingData, training_data
from condense_once.train.seeds import Stream, numpy_generator


def alignment(data: CondensedSet, config: TheoryConfig) -> Iterator[Record]:
    """For each size, epoch and part: the cosine of its mean gradient with that of the whole and of real images."""
    real = None if config.real is None else _real_images(data, config.real, config)
    for subset in sized_subsets(data, config):
        prepared, found = training_data(subset), list[Record]()

        def measure(epoch: int, net: nn.Module, prepared: TrainingData = prepared, found: list[Record] = found) -> None:
            found.extend(_at(epoch, net, prepared, real, config))

        train_and_measure(prepared, config, measure)
        yield from ({"set": data.name, "patches": len(subset), **record} for record in found)


def parts(
    errors: NDArray[np.float64], labels: NDArray[np.int64], share: float, rng: np.random.Generator
) -> dict[str, NDArray[np.int64]]:
    """Rows of the easiest and of the hardest patches, and as many random ones for comparison, all balanced over classes.

    Without balance, the easy patches of a hardly trained network are those of the class that it predicts for all.

    >>> errors, labels = np.array([0.3, 0.1, 0.9, 0.2]), np.array([0, 0, 1, 1])
    >>> found = parts(errors, labels, 0.5, np.random.default_rng(0))
    >>> found["easy"].tolist(), found["hard"].tolist(), len(found["random"])
    ([1, 3], [0, 2], 2)
    """
    count = max(1, round(share * len(errors)))
    scores: dict[str, tuple[NDArray[np.float64], Prefer]] = {
        "easy": (errors, "easy"),
        "hard": (errors, "hard"),
        "random": (rng.random(len(errors)), "easy"),
    }
    return {
        part: order_rows(values, labels, easy="low", prefer=prefer, balanced=True)[:count]
        for part, (values, prefer) in scores.items()
    }


def _at(
    epoch: int, net: nn.Module, data: TrainingData, real: TrainingData | None, config: TheoryConfig
) -> Iterator[Record]:
    whole = mean_gradient(net, data.images, data.labels)
    goal = None if real is None else mean_gradient(net, real.images, real.labels)
    errors = prediction_errors(net, data.images, data.labels)
    rng = numpy_generator(config.seed, Stream.RANDOM_SCORES)
    for part, rows in parts(errors, data.labels.numpy(), config.share, rng).items():
        gradient = _gradient_of(net, data, torch.from_numpy(rows))
        yield {
            "epoch": epoch,
            "part": part,
            "cosine with the whole": cosine(gradient, whole),
            "cosine with real images": float("nan") if goal is None else cosine(gradient, goal),
            "length / the whole's": float(gradient.norm() / whole.norm().clamp_min(1e-30)),
            "mean error": float(errors[rows].mean()),
        }


def _gradient_of(net: nn.Module, data: TrainingData, rows: Tensor) -> Tensor:
    return mean_gradient(net, data.images[rows], data.labels[rows])


def _real_images(data: CondensedSet, source: Source, config: TheoryConfig) -> TrainingData:
    """Random training images of a source, normalised and labelled like the set."""
    match_classes(data, source)
    count = min(config.real_images, len(source.train.labels))
    rng = numpy_generator(config.seed, Stream.REAL_BATCHES)
    images = coreset(source, np.sort(rng.permutation(len(source.train.labels))[:count]))
    return training_data(images)


ALIGNMENT = THEORY.add(
    Measurement(
        "alignment",
        "Rule 1: mean gradients of easy and hard patches, against those of the whole and of real images",
        "In a small set easy patches carry the prevalent pattern; in a large one hard patches add what is missing.",
        keys=("set", "patches", "epoch", "part"),
        values=("cosine with the whole", "cosine with real images", "length / the whole's", "mean error"),
        chart=Chart("epoch", "cosine with real images", lines=("part",)),
        measure=alignment,
    )
)
