"""Accuracy of subsets of a set by several rules: from as many images a class as it has to one, two and five.

For each seed one training run gives the evidence for all rules, and one network is trained on each subset. Every result is
appended to the log given, and a second call goes on from there:
python benchmarks/rules_table.py SET LOG.jsonl [--test cifar10] [--ipc 1 2 5] [--seeds 3] [--rules yoco random …]
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, stdev
from threading import Lock

from log import Log
from machine import cpu_model

import condense_once
from condense_once.evaluation import PROTOCOLS
from condense_once.metrics import Epochs, MetricSettings
from condense_once.metrics.gathering import gather
from condense_once.select.basis import Basis
from condense_once.select.rule import Rule
from condense_once.train.hardware import cores

RULES = ("yoco", "lbpe-easy", "random-balanced", "random", "lbpe-hard-balanced", "el2n", "aum")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("set")
    words.add_argument("log", type=Path)
    words.add_argument("--test", default="cifar10")
    words.add_argument("--protocol", default="quick")
    words.add_argument(
        "--epochs",
        type=Epochs.parse,
        help="which count for lbpe, such as top10/100 or all; by default the authors' for such a set",
    )
    words.add_argument("--ipc", type=int, nargs="+", default=[1, 2, 5])
    words.add_argument("--seeds", type=int, default=3)
    words.add_argument("--rules", nargs="+", default=RULES)
    given = words.parse_args()
    data, test, log = condense_once.load(given.set), condense_once.open_source(given.test), Log(given.log)
    protocol, rules = PROTOCOLS.get(given.protocol), {name: Rule.parse(name) for name in given.rules}
    settings = [MetricSettings.for_data(data, seed=seed).counting(given.epochs) for seed in range(given.seeds)]
    bases: dict[int, Basis] = {}
    lock = Lock()

    def basis(seed: int) -> Basis:
        with lock:
            if seed not in bases:
                evidence = gather(data, {rule.metric for rule in rules.values()}, settings[seed], seed=seed)
                bases[seed] = Basis.of_evidence(data, evidence, settings[seed])
            return bases[seed]

    def accuracy(ipc: int, name: str, seed: int) -> float:
        key = {"set": data.name, "rule": name, "ipc": ipc, "seed": seed, "protocol": protocol.id, "test": test.name}
        key["epochs"] = str(settings[seed].lbpe)
        entry = log.find(**key)
        if entry is None:
            rows = rules[name].rows(basis(seed), ipc * data.factor**2 * len(data.classes))
            result = condense_once.evaluate(data.take(rows), test, protocol=protocol, repeats=1, seed=seed)
            with lock:
                entry = log.add(**key, accuracy=result.mean, seconds=result.seconds)
        return float(entry["accuracy"])

    cells = [(ipc, name, seed) for ipc in given.ipc for seed in range(given.seeds) for name in rules]
    with ThreadPoolExecutor(cores()) as pool:
        found = dict(zip(cells, pool.map(lambda cell: accuracy(*cell), cells), strict=True))
    print(
        f"{cpu_model()}; {data.name}, lbpe {settings[0].lbpe}, {protocol.id}, {len(test.test.labels)} test images,"
        f" n = {given.seeds}"
    )
    print("| rule | " + " | ".join(f"to {ipc}" for ipc in given.ipc) + " |\n|---" + "|---" * len(given.ipc) + "|")
    for name in rules:
        runs = [[found[ipc, name, seed] for seed in range(given.seeds)] for ipc in given.ipc]
        print(f"| {name} | " + " | ".join(f"{mean(run):.1%} ± {spread(run):.1%}" for run in runs) + " |")


def spread(runs: list[float]) -> float:
    return stdev(runs) if len(runs) > 1 else float("nan")


if __name__ == "__main__":
    main()
