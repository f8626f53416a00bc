"""How often does the interval that a curve predicts hold the accuracy measured at sizes that the curve was not fitted on?

    python benchmarks/predictions.py LOG [--sets cifar10-idc-ipc10 cifar10-nested-ipc10] [--cases 10] [--net convnet-d3-w64]
        [--repeats 2] [--seed 0]

The curve of each set is measured first and kept beside LOG. Half of the cases are random sizes as stored, half random numbers of
bytes, for which `resize --bytes` chooses patches and layers. Results are appended to LOG, and a second call resumes there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from log import Log

import condense_once
from condense_once.condensed.accuracy_curve import AccuracyCurve
from condense_once.condensed.codec.within import best_within, expected_accuracy
from condense_once.condensed.file import from_bytes, to_bytes
from condense_once.condensed.set import CondensedSet

FEWEST_BYTES = 512  # per class


def measured(name: str, file: Path, net: str, repeats: int) -> CondensedSet:
    """The set with its curve, saved after every point."""
    data = condense_once.load(str(file) if file.exists() else name)
    return condense_once.measure_curve(
        data, net=net, repeats=repeats, measured=lambda part: condense_once.save(part, file, force=True)
    )


def cases_of(data: CondensedSet, count: int, seed: int) -> list[CondensedSet]:
    """Parts of random sizes, spread evenly over the logarithm: by patches, and by bytes."""
    rng, classes = np.random.default_rng(seed), len(data.classes)
    rounds = np.exp(rng.uniform(np.log(2), np.log(len(data) // classes), count - count // 2))
    limits = np.exp(rng.uniform(np.log(FEWEST_BYTES * classes), np.log(len(to_bytes(data))), count // 2))
    by_patches = [condense_once.resize(data, total=classes * int(number)) for number in rounds]
    return by_patches + [from_bytes(best_within(data, int(limit)), data.name) for limit in limits]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--sets", nargs="+", default=["cifar10-idc-ipc10", "cifar10-nested-ipc10"])
    parser.add_argument("--cases", type=int, default=10, help="of each set")
    parser.add_argument("--net", default="convnet-d3-w64")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    log = Log(args.log)
    for name in args.sets:
        data = measured(name, args.log.with_name(f"{name}-{args.net}.safetensors"), args.net, args.repeats)
        curve = AccuracyCurve.of(data.provenance)
        assert curve is not None
        for case, part in enumerate(cases_of(data, args.cases, args.seed)):
            key = {"set": name, "net": args.net, "repeats": args.repeats, "seed": args.seed, "case": case}
            if log.find(**key):
                continue
            expected = expected_accuracy(curve, part)
            found = condense_once.evaluate(part, net=args.net, repeats=args.repeats, seed=args.seed + 1).mean
            log.add(**key, patches=len(part), **expected._asdict(), measured=found)
    print("| set | patches | expected | interval | measured | held |\n|---|---|---|---|---|---|")
    held = [entry["low"] <= entry["measured"] <= entry["high"] for entry in log.entries]
    for entry, holds in zip(log.entries, held, strict=True):
        percent = {field: 100 * entry[field] for field in ("accuracy", "low", "high", "measured")}
        print(
            f"| {entry['set']} | {entry['patches']} | {percent['accuracy']:.1f} | {percent['low']:.1f} to {percent['high']:.1f}"
            f" | {percent['measured']:.1f} | {'yes' if holds else 'no'} |"
        )
    print(f"\n{sum(held)} of {len(held)} measured accuracies are within the interval.")


if __name__ == "__main__":
    main()
