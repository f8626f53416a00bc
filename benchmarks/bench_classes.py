"""What a step of condensing costs with more classes: seconds of a step of all of them, by IDC without network updates.

python benchmarks/bench_classes.py [SOURCE] [--classes 10 50 100] [--net convnet-d3-w64]; the first classes of the source, by
default of CIFAR-100, which has to be there: condense-once data get cifar100, or name a file of it.
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

STEPS = 4  # of which the first is not counted


def first_classes(source: Source, count: int) -> Source:
    rows = np.flatnonzero(np.asarray(source.train.labels) < count)
    return replace(source, classes=source.classes[:count], splits={"train": SplitSubset(source.train, rows)})


def seconds_a_step(source: Source, net: str) -> float:
    moments: list[float] = []

    class Clock(Callback):
        def on_step_end(self, progress: RunProgress) -> None:
            moments.append(time.perf_counter())

    overrides = {"iterations": 1, "steps": STEPS, "net_images": 1}
    condense_once.condense(source, method="idc", ipc=1, net=net, overrides=overrides, callbacks=[Clock()])
    return min(after - before for before, after in pairwise(moments))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("source", nargs="?", default="cifar100")
    words.add_argument("--classes", nargs="+", type=int, default=[10, 50, 100])
    words.add_argument("--net", default="convnet-d3-w64")
    given = words.parse_args()
    source = condense_once.open_source(given.source)
    print(f"{cpu_model()}; {source.name}, one image per class, {given.net}, best of {STEPS - 1} steps")
    print("| classes | seconds a step of all classes | ms a class |")
    print("|---|---|---|")
    for count in given.classes:
        seconds = seconds_a_step(first_classes(source, count), given.net)
        print(f"| {count} | {seconds:.2f} | {1000 * seconds / count:.1f} |", flush=True)


if __name__ == "__main__":
    main()
