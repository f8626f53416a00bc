"""How the cost of condensing grows with the classes: seconds per step of all classes, by IDC without network updates.

    python benchmarks/bench_classes.py [SOURCE] [--classes 10 50 100] [--net convnet-d3-w64]

It takes the first classes of the source, by default CIFAR-100: run `condense-once data get cifar100` first, or pass a path.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
from machine import cpu_model

import condense_once
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.data.source import Source
from condense_once.data.split import SplitSubset

STEPS = 4  # the first one is warm-up


def first_classes(source: Source, count: int) -> Source:
    rows = np.flatnonzero(np.asarray(source.train.labels) < count)
    return replace(source, classes=source.classes[:count], splits={"train": SplitSubset(source.train, rows)})


def seconds_per_step(source: Source, net: str) -> float:
    moments: list[float] = []

    class Clock(Callback):
        def on_step_end(self, progress: RunProgress) -> None:
            moments.append(time.perf_counter())

    overrides = {"iterations": 1, "steps": STEPS, "net_images": 1}
    condense_once.condense(source, method="idc", ipc=1, net=net, overrides=overrides, callbacks=[Clock()])
    return min(after - before for before, after in pairwise(moments))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", default="cifar100")
    parser.add_argument("--classes", nargs="+", type=int, default=[10, 50, 100])
    parser.add_argument("--net", default="convnet-d3-w64")
    args = parser.parse_args()
    source = condense_once.open_source(args.source)
    print(f"{cpu_model()}; {source.name}, one image per class, {args.net}, best of {STEPS - 1} steps")
    print("| classes | seconds per step of all classes | ms per class |")
    print("|---|---|---|")
    for count in args.classes:
        seconds = seconds_per_step(first_classes(source, count), args.net)
        print(f"| {count} | {seconds:.2f} | {1000 * seconds / count:.1f} |", flush=True)


if __name__ == "__main__":
    main()
