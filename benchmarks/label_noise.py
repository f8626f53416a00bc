"""Noise in a set: does YOCO's choice still beat random, and does it leave the spoiled patches out?

`python benchmarks/label_noise.py SET LOG.jsonl --share 0.2 --kind labels --repeats 3`: a share of the patches gets a random
wrong label (`labels`) or loses its picture to noise (`images`); the set is scored, and pruned to one image per class by
`yoco` and `random-balanced`. For noise before condensing, pass a set that was condensed from such a source: `--kind none`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from log import Log
from numpy.typing import NDArray

from condense_once import ComputeConfig, CondensedSet, evaluate, load, score, select

RULES = ("yoco", "random-balanced", "lbpe-hard-balanced")


def spoiled(data: CondensedSet, share: float, kind: str, seed: int) -> tuple[CondensedSet, NDArray[np.bool_]]:
    """The set with some patches spoiled, without its scores, and which they are."""
    rng = np.random.default_rng([seed, 11])
    hit = np.zeros(len(data), np.bool_)
    hit[rng.permutation(len(data))[: round(share * len(data))]] = kind != "none"
    plain = replace(data, scores={}, ranking=None)
    if kind == "labels":
        others = (data.labels + rng.integers(1, len(data.classes), len(data))) % len(data.classes)
        return replace(plain, labels=np.where(hit, others, data.labels)), hit
    noise = rng.permuted(data.cells.reshape(len(data), -1), axis=1).reshape(data.cells.shape)
    return replace(plain, cells=np.where(hit[:, None, None, None], noise, data.cells)), hit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set")
    parser.add_argument("log", type=Path)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--kind", choices=("labels", "images", "none"), default="labels")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--net", default=None)
    parser.add_argument("--ipc", type=int, default=1)
    given = parser.parse_args()
    whole, log = load(given.set), Log(given.log)
    for seed in range(given.repeats):
        place = {"set": given.set, "kind": given.kind, "share": given.share, "ipc": given.ipc, "seed": seed}
        place["net"] = given.net
        if all(log.find(**place, rule=rule) for rule in RULES):
            continue
        data, hit = spoiled(whole, given.share, given.kind, seed)
        scored = score(data, "lbpe", seed=seed, net=given.net)
        of_origin = dict(zip(data.origin.tolist(), hit.tolist(), strict=True))
        for rule in RULES:
            kept = select(scored, rule, ipc=given.ipc, **({"seed": seed} if rule.startswith("random") else {}))
            result = evaluate(kept, net=given.net, repeats=1, seed=seed, compute=ComputeConfig(workers=1))
            bad = sum(of_origin[row] for row in kept.origin.tolist()) / len(kept)
            log.add(**place, rule=rule, accuracy=result.mean, spoiled_among_kept=bad, test=result.test)


if __name__ == "__main__":
    main()
