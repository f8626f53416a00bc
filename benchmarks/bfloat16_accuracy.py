"""Does bfloat16 cost accuracy? The same set and the same seeds, in float32 and in bfloat16.

Claim: the means are within one point of each other. Emulated bfloat16 is slow: pass --net convnet-d3-w32 there.
Every pair of runs is appended to the log, and a second call resumes from there:

    python benchmarks/bfloat16_accuracy.py LOG.jsonl [--net convnet-d3] [--seeds 3] [--patches 40] [--test cifar10]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import torch
from log import Log
from machine import cpu_model

import condense_once
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.train.compute_config import ComputeConfig, Precision
from condense_once.train.hardware import has_bfloat16

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
REPEATS = 2  # of each seed, in parallel
CLAIM = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--net", default="convnet-d3")
    parser.add_argument("--seeds", type=int, default=3, help=f"{REPEATS} runs each")
    parser.add_argument("--patches", type=int, default=40, help="how many of cifar10-real-ipc10")
    parser.add_argument("--test", default="cifar10")
    parser.add_argument("--epochs", type=int, help="override the protocol's, to try this script")
    args = parser.parse_args()
    log, protocol = Log(args.log), PROTOCOLS.get("quick")
    if args.epochs:
        protocol = replace(protocol, name="trial", small=replace(protocol.small, epochs=args.epochs))
    data = condense_once.load("cifar10-real-ipc10", first=args.patches)
    source = condense_once.open_source(args.test)
    where = {"net": args.net, "protocol": protocol.id, "patches": args.patches, "test": args.test}
    accuracies: dict[Precision, list[float]] = {precision: [] for precision in PRECISIONS}
    for seed in range(args.seeds):
        for precision in PRECISIONS:
            key = {**where, "precision": precision, "seed": seed}
            entry = log.find(**key)
            if entry is None:
                result = condense_once.evaluate(
                    data,
                    source,
                    protocol=protocol,
                    net=args.net,
                    repeats=REPEATS,
                    seed=seed,
                    compute=ComputeConfig(precision=precision),
                )
                entry = log.add(**key, runs=[run.accuracy for run in result.runs], seconds=result.seconds)
            accuracies[precision] += entry["runs"]
    how = "in hardware" if has_bfloat16(torch.device("cpu")) else "emulated"
    n = args.seeds * REPEATS
    print(
        f"{cpu_model()}; bfloat16 {how}; {args.net}, {protocol.id}, {args.patches} patches, {args.test}; n = {n} each"
    )
    for precision, values in accuracies.items():
        print(f"{precision:10} {mean(values):.2%} ± {stdev(values):.2%}")
    difference = mean(accuracies["bfloat16"]) - mean(accuracies["float32"])
    error = sum(stdev(values) ** 2 / n for values in accuracies.values()) ** 0.5
    print(f"difference {difference * 100:+.2f} points, standard error {error * 100:.2f}")
    if n < 5 or abs(difference) > CLAIM:
        sys.exit(
            "The claim does not hold on this machine." if n >= 5 else "Too few runs to tell: pass --seeds 3 or more."
        )


if __name__ == "__main__":
    main()
