"""How good are ten random images per class of CIFAR-10? The literature reports 26 to 31 %, which our trainer must reach.

Each sample is a balanced random selection of training images (factor 1, not encoded), tested on the full test split:

    python benchmarks/random_level.py [--protocol paper] [--plain] [--samples 3] [--repeats 2] [--epochs 300]
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


def sample(source: Source, images: int, rng: np.random.Generator) -> CondensedSet:
    """This many random training images of each class."""
    classes = range(len(source.classes))
    rows = [rng.choice(np.flatnonzero(source.train.labels == k), images, replace=False) for k in classes]
    return condense_once.coreset(source, np.concatenate(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", default="quick")
    parser.add_argument("--net", default="convnet-d3")
    parser.add_argument("--images", type=int, default=10, help="per class")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2, help="runs on each sample")
    parser.add_argument("--plain", action="store_true", help="no augmentation and no CutMix, as DC evaluates")
    parser.add_argument("--epochs", type=int, help="override the protocol's, to try this script")
    args = parser.parse_args()
    protocol = PROTOCOLS.get(args.protocol)
    if args.epochs:
        protocol = replace(protocol, name="trial", small=replace(protocol.small, epochs=args.epochs))
    if args.plain:
        protocol = replace(protocol, name="plain", small=replace(protocol.small, augmentation="none", cutmix=0.0))
    source = condense_once.open_source("cifar10")
    print(f"{cpu_model()}; {args.net}, {protocol.id}, {len(source.test.labels)} test images", flush=True)
    levels = []
    for number in range(args.samples):
        data = sample(source, args.images, np.random.default_rng(number))
        result = condense_once.evaluate(
            data, source, protocol=protocol, net=args.net, repeats=args.repeats, seed=number
        )
        levels.append(result.mean)
        runs = " ".join(f"{run.accuracy:.2%}" for run in result.runs)
        print(f"sample {number}: {result.mean:.2%} ({runs}), {result.seconds:.0f} s", flush=True)
    spread = f" ± {stdev(levels):.2%}" if len(levels) > 1 else ""
    low, high = LITERATURE
    print(f"{args.images} random images per class: {mean(levels):.2%}{spread} over {args.samples} samples", end="; ")
    print(f"the literature reports {low:.0%} to {high:.0%} for 10")


if __name__ == "__main__":
    main()
