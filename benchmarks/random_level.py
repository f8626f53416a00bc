"""How good are ten random images per class of CIFAR-10? The literature says 26 to 31 %, a level that an honest trainer must meet.

Each draw is a balanced choice of whole training images (factor 1, nothing encoded), tested on the whole test split:
python benchmarks/random_level.py [--protocol paper] [--plain] [--draws 3] [--repeats 2] [--epochs 300]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
from machine import cpu_model

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.evaluation.protocols import PROTOCOLS

LITERATURE = (0.26, 0.31)


def draw(source: Source, images: int, rng: np.random.Generator) -> CondensedSet:
    """So many random training images of every class."""
    classes = range(len(source.classes))
    rows = [rng.choice(np.flatnonzero(source.train.labels == k), images, replace=False) for k in classes]
    return condense_once.coreset(source, np.concatenate(rows))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--protocol", default="quick")
    words.add_argument("--net", default="convnet-d3")
    words.add_argument("--images", type=int, default=10, help="of every class")
    words.add_argument("--draws", type=int, default=3)
    words.add_argument("--repeats", type=int, default=2, help="trainings on each draw")
    words.add_argument("--plain", action="store_true", help="no augmentation and no CutMix, as DC evaluates")
    words.add_argument("--epochs", type=int, help="another number than the protocol's, to try this script")
    given = words.parse_args()
    protocol = PROTOCOLS.get(given.protocol)
    if given.epochs:
        protocol = replace(protocol, name="trial", small=replace(protocol.small, epochs=given.epochs))
    if given.plain:
        protocol = replace(protocol, name="plain", small=replace(protocol.small, augmentation="none", cutmix=0.0))
    source = condense_once.open_source("cifar10")
    print(f"{cpu_model()}; {given.net}, {protocol.id}, {len(source.test.labels)} test images", flush=True)
    levels = []
    for number in range(given.draws):
        data = draw(source, given.images, np.random.default_rng(number))
        result = condense_once.evaluate(
            data, source, protocol=protocol, net=given.net, repeats=given.repeats, seed=number
        )
        levels.append(result.mean)
        runs = " ".join(f"{run.accuracy:.2%}" for run in result.runs)
        print(f"draw {number}: {result.mean:.2%} ({runs}), {result.seconds:.0f} s", flush=True)
    spread = f" ± {stdev(levels):.2%}" if len(levels) > 1 else ""
    low, high = LITERATURE
    print(f"{given.images} random images per class: {mean(levels):.2%}{spread} over {given.draws} draws", end="; ")
    print(f"the literature has {low:.0%} to {high:.0%} for 10")


if __name__ == "__main__":
    main()
