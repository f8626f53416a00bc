"""Does bfloat16 cost accuracy? The same set and the same seeds, once in float32 and once in bfloat16.

Claim: the means are within one point of each other. Where bfloat16 is emulated it is slow: pass --net convnet-d3-w32 there.
Every pair of trainings is appended to the log given, and a second call goes on from there:
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
from condense_once.train.hardware import ComputeConfig, Precision, has_bfloat16

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
REPEATS = 2  # of each seed, side by side
CLAIM = 0.01


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("log", type=Path)
    words.add_argument("--net", default="convnet-d3")
    words.add_argument("--seeds", type=int, default=3, help=f"of {REPEATS} trainings each")
    words.add_argument("--patches", type=int, default=40, help="of cifar10-real-ipc10")
    words.add_argument("--test", default="cifar10")
    words.add_argument("--epochs", type=int, help="another number than the protocol's, to try this script")
    given = words.parse_args()
    log, protocol = Log(given.log), PROTOCOLS.get("quick")
    if given.epochs:
        protocol = replace(protocol, name="trial", small=replace(protocol.small, epochs=given.epochs))
    data = condense_once.load("cifar10-real-ipc10", first=given.patches)
    source = condense_once.open_source(given.test)
    where = {"net": given.net, "protocol": protocol.id, "patches": given.patches, "test": given.test}
    accuracies: dict[Precision, list[float]] = {precision: [] for precision in PRECISIONS}
    for seed in range(given.seeds):
        for precision in PRECISIONS:
            facts = {**where, "precision": precision, "seed": seed}
            entry = log.find(**facts)
            if entry is None:
                result = condense_once.evaluate(
                    data,
                    source,
                    protocol=protocol,
                    net=given.net,
                    repeats=REPEATS,
                    seed=seed,
                    compute=ComputeConfig(precision=precision),
                )
                entry = log.add(**facts, runs=[run.accuracy for run in result.runs], seconds=result.seconds)
            accuracies[precision] += entry["runs"]
    how = "in hardware" if has_bfloat16(torch.device("cpu")) else "emulated"
    n = given.seeds * REPEATS
    print(
        f"{cpu_model()}; bfloat16 {how}; {given.net}, {protocol.id}, {given.patches} patches, {given.test}; n = {n} each"
    )
    for precision, values in accuracies.items():
        print(f"{precision:10} {mean(values):.2%} ± {stdev(values):.2%}")
    difference = mean(accuracies["bfloat16"]) - mean(accuracies["float32"])
    error = sum(stdev(values) ** 2 / n for values in accuracies.values()) ** 0.5
    print(f"difference {difference * 100:+.2f} points, standard error {error * 100:.2f}")
    if n < 5 or abs(difference) > CLAIM:
        sys.exit("the claim does not hold here" if n >= 5 else "too few trainings to say: pass --seeds 3 or more")


if __name__ == "__main__":
    main()
