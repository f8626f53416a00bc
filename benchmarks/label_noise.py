"""Noise: does YOCO's choice still beat random, and does it leave the spoiled patches out?

`python benchmarks/label_noise.py SET LOG.jsonl --share 0.2 --kind labels --repeats 3`: a share of the patches gets a random
wrong label (`labels`) or has its pixels shuffled (`images`); the set is scored, and pruned to one image per class by each
rule.

`python benchmarks/label_noise.py cifar10 LOG.jsonl --where source --steps 100 --repeats 3`: the same share of the training
images is spoiled before they are condensed by distribution matching (DM, factor 2), from random images; a patch counts as
spoiled if the image that it started from was. Condensed sets stay beside the log. A second call resumes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from log import Log
from numpy.typing import NDArray

from condense_once import ComputeConfig, CondensedSet, condense, evaluate, load, open_source, save, score, select
from condense_once.condensing.originals import original_rows
from condense_once.data.source import ArraySplit, Source

RULES = ("yoco", "random-balanced", "lbpe-hard-balanced")
STREAM = 11  # of the noise, apart from everything else that is sampled
IPC, FACTOR = 10, 2  # of the sets that are condensed here

Images, Labels, Hit = NDArray[Any], NDArray[np.int64], NDArray[np.bool_]


def spoil(
    images: Images, labels: Labels, classes: int, *, share: float, kind: str, seed: int
) -> tuple[Images, Labels, Hit]:
    """Images `[n, ch, h, w]` and labels, some of either spoiled, and which they are.

    >>> images, labels = np.arange(12).reshape(3, 1, 2, 2), np.array([0, 1, 2])
    >>> same, wrong, hit = spoil(images, labels, 3, share=0.67, kind="labels", seed=0)
    >>> np.array_equal(same, images), np.array_equal(hit, wrong != labels), int(hit.sum())
    (True, True, 2)
    """
    rng, count = np.random.default_rng([seed, STREAM]), len(labels)
    hit = np.zeros(count, np.bool_)
    hit[rng.permutation(count)[: round(share * count)]] = kind != "none"
    if kind == "labels":
        return images, np.where(hit, (labels + rng.integers(1, classes, count)) % classes, labels), hit
    mixed = images.reshape(count, -1).copy()
    mixed[hit] = rng.permuted(mixed[hit], axis=1)
    return mixed.reshape(images.shape), labels, hit


def spoiled_set(data: CondensedSet, **noise: Any) -> tuple[CondensedSet, Hit]:
    """The set with some patches spoiled, without its scores, and which they are."""
    cells, labels, hit = spoil(data.cells, data.labels, len(data.classes), **noise)
    return replace(data, cells=cells, labels=labels, scores={}, ranking=None), hit


def spoiled_source(source: Source, **noise: Any) -> tuple[Source, Hit]:
    """The source with some training images spoiled, and which they are."""
    train = source.train
    images, labels, hit = spoil(train.take(slice(None)), train.labels, len(source.classes), **noise)
    return replace(source, splits={**source.splits, "train": ArraySplit(images, labels)}), hit


def condensed_from(source: Source, file: Path, *, net: str | None, steps: int, seed: int) -> CondensedSet:
    """The set in this file, condensed from a source if it is not there yet."""
    if not file.exists():
        made = condense(
            source, ipc=IPC, method="dm", factor=FACTOR, net=net, seed=seed, overrides={"iterations": steps}
        )
        save(made, file)
    return load(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("given", metavar="SET_OR_SOURCE")
    parser.add_argument("log", type=Path)
    parser.add_argument("--where", choices=("set", "source"), default="set")
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--kind", choices=("labels", "images", "none"), default="labels")
    parser.add_argument("--steps", type=int, default=100, help="of condensing, with --where source")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--net", default=None)
    parser.add_argument("--ipc", type=int, default=1)
    given = parser.parse_args()
    log = Log(given.log)
    for seed in range(given.repeats):
        place = {"set": given.given, "kind": given.kind, "share": given.share, "ipc": given.ipc, "seed": seed}
        place |= {"net": given.net} | ({"where": "source", "steps": given.steps} if given.where == "source" else {})
        if all(log.find(**place, rule=rule) for rule in RULES):
            continue
        noise = {"share": given.share, "kind": given.kind, "seed": seed}
        if given.where == "set":
            data, hit = spoiled_set(load(given.given), **noise)
        else:
            source, images_hit = spoiled_source(open_source(given.given), **noise)
            file = given.log.with_name(
                f"{given.log.stem}-{given.kind}-{given.share:g}-{given.steps}-{seed}.safetensors"
            )
            data = condensed_from(source, file, net=given.net, steps=given.steps, seed=seed)
            hit = images_hit[original_rows(data, source)]
        measure(data, hit, log, place, seed)


def measure(data: CondensedSet, hit: Hit, log: Log, place: dict[str, Any], seed: int) -> None:
    """Score a set, keep a part of it by each rule, and log the accuracy and how many of the kept patches are spoiled."""
    scored = score(data, "lbpe", seed=seed, net=place["net"])
    of_origin = dict(zip(data.origin.tolist(), hit.tolist(), strict=True))
    for rule in RULES:
        if log.find(**place, rule=rule):
            continue
        kept = select(scored, rule, ipc=place["ipc"], **({"seed": seed} if rule.startswith("random") else {}))
        result = evaluate(kept, net=place["net"], repeats=1, seed=seed, compute=ComputeConfig(workers=1))
        bad = sum(of_origin[row] for row in kept.origin.tolist()) / len(kept)
        log.add(
            **place,
            rule=rule,
            accuracy=result.mean,
            spoiled_among_kept=bad,
            spoiled_among_all=float(hit.mean()),
            test=result.test,
        )


if __name__ == "__main__":
    main()
