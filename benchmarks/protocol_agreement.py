"""Does `quick` rank subsets as `paper` does? Seven subsets of 40 patches, on held-out training images of CIFAR-10.

Takes about an hour on two cores; every result is appended to the log, and a second call resumes from there:

    python benchmarks/protocol_agreement.py LOG.jsonl [protocol ...] [--repeats 2]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from log import Log
from machine import cpu_model

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.metrics import MetricConfig, record_scoring_run

KEEP = 40
HELD_OUT = slice(40_000, 50_000)  # of the training split: a protocol must not be tuned on the test split


def subsets(data: CondensedSet) -> dict[str, np.ndarray]:
    """Rows of different quality: easy or hard by their mean error early in training, balanced or not, and random."""
    run = record_scoring_run(data, ["aum"], MetricConfig(scoring_epochs=30))  # aum: dynamics of all epochs
    assert run.dynamics is not None
    error = run.dynamics.error.mean(0)
    order = np.argsort(error, kind="stable")
    classes = len(data.classes)

    def balanced(rows: np.ndarray) -> np.ndarray:
        return np.concatenate([rows[data.labels[rows] == label][: KEEP // classes] for label in range(classes)])

    rng = np.random.default_rng(0)
    return {
        "easy": order[:KEEP],
        "easy balanced": balanced(order),
        "hard": order[::-1][:KEEP],
        "hard balanced": balanced(order[::-1]),
        "random": rng.permutation(len(data))[:KEEP],
        "random balanced": balanced(rng.permutation(len(data))),
        "medium balanced": balanced(order[np.argsort(np.abs(np.arange(len(order)) - len(order) // 2), kind="stable")]),
    }


def ranks(values: list[float]) -> np.ndarray:
    return np.argsort(np.argsort(values))


def measured(
    log: Log, subset: str, data: CondensedSet, test: Source, protocol: Protocol, repeats: int
) -> dict[str, Any]:
    """A cell of the table, from the log if it has enough runs: the first ones do not depend on how many follow."""
    entry = log.find(subset=subset, protocol=protocol.id)
    if entry is None or len(entry["runs"]) < repeats:
        result = condense_once.evaluate(data, test, protocol=protocol, repeats=repeats)
        runs, seconds = [run.accuracy for run in result.runs], sum(run.seconds for run in result.runs)
        entry = log.add(subset=subset, protocol=protocol.id, runs=runs, seconds=seconds)
    fraction = repeats / len(entry["runs"])
    return {"runs": entry["runs"][:repeats], "seconds": entry["seconds"] * fraction}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("protocols", nargs="*", default=["quick", "paper"])
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    log, protocols = Log(args.log), [PROTOCOLS.get(name) for name in args.protocols]
    cifar = condense_once.open_source("cifar10")
    held_out = ArraySplit(cifar.train.take(HELD_OUT), cifar.train.labels[HELD_OUT])
    test = replace(cifar, name="cifar10 train 40000-49999", splits={"test": held_out})
    data = condense_once.load("cifar10-real-ipc10")
    chosen = subsets(data)
    table = {
        protocol.id: [
            measured(log, name, data.take(rows), test, protocol, args.repeats) for name, rows in chosen.items()
        ]
        for protocol in protocols
    }
    means = {p: [float(np.mean(cell["runs"])) for cell in cells] for p, cells in table.items()}
    stds = {p: [float(np.std(cell["runs"], ddof=1)) for cell in cells] for p, cells in table.items()}
    print(f"{cpu_model()}; n = {args.repeats} each; trained on {KEEP} patches, tested on {test.name}")
    print(f"{'subset':18}" + "".join(f"{p:>20}" for p in table))
    for k, subset in enumerate(chosen):
        print(f"{subset:18}" + "".join(f"{means[p][k]:13.2%} ±{stds[p][k]:5.2%}" for p in table))
    *others, last = table
    for p in others:
        rho = np.corrcoef(ranks(means[p]), ranks(means[last]))[0, 1]
        cost = sum(cell["seconds"] for cell in table[p]) / sum(cell["seconds"] for cell in table[last])
        print(f"{p} against {last}: rank correlation {rho:.2f}, {cost:.0%} of the time")


if __name__ == "__main__":
    main()
