"""What a level of the fleet reaches: networks trained on its share, tested on real images."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from condense_once import Recipe, Source
from condense_once.device import DeviceSubset
from condense_once.train.images import DataSpec
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import Trainer
from examples.fleet.devices import EPOCHS

NET = "convnet-d3-w24"
PASSES = 1_000_000  # of all runs together: enough that the native kernels, built once per machine, pay off


@dataclass(frozen=True)
class Trained:
    """One training run at one level."""

    level: int  # patches per class
    seed: int
    accuracy: float  # in %
    seconds: float  # of CPU time, training alone


def train(
    subset: DeviceSubset, test: Source, *, seed: int = 0, epochs: int = EPOCHS, net: str = NET, test_images: int = 2000
) -> Trained:
    """Train a fresh network on what a device has, and test it once, at the end, on the first test images."""
    labels = torch.from_numpy(subset.labels)
    spec = DataSpec(subset.patches.shape[1:], len(subset.classes), subset.space)
    trainer = Trainer(net, spec, Recipe(epochs=epochs, batch=32, lr=0.02), passes=PASSES)
    start = time.process_time()
    weights, batches = generator(seed, Stream.WEIGHTS), generator(seed, Stream.BATCHES)
    trainer.fit(torch.from_numpy(subset.inputs), labels, weights=weights, batches=batches)
    seconds = time.process_time() - start
    pixels = test.test.take(slice(test_images)).astype(np.float32) / np.float32(255)
    predicted = trainer.logits(torch.from_numpy(subset.space.to_network(pixels))).argmax(1)
    right = predicted == torch.tensor(test.test.labels[:test_images])
    return Trained(len(subset) // len(subset.classes), seed, 100 * float(right.float().mean()), seconds)


def missing(levels: Sequence[int], runs: int, done: Sequence[Trained]) -> Iterator[tuple[int, int]]:
    """The levels and seeds that are not trained yet, a seed at every level before the next seed.

    >>> list(missing([1, 5], 2, [Trained(1, 0, 30.0, 1.0)]))
    [(5, 0), (1, 1), (5, 1)]
    """
    have = {(each.level, each.seed) for each in done}
    return ((level, seed) for seed in range(runs) for level in levels if (level, seed) not in have)
