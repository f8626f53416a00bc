"""Does `quick` rank subsets as `paper` does? Seven subsets of 40 patches, on held-back training images of CIFAR-10.

Takes about an hour on two cores; every result is appended to the log given, and a second call goes on from there:
python benchmarks/protocol_agreement.py LOG.jsonl [protocol ...]
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from machine import cpu_model

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import ArraySplit
from condense_once.evaluation import PROTOCOLS
from condense_once.train import record_run

KEEP = 40
REPEATS = 2
HELD_BACK = slice(40_000, 50_000)  # of the training split: choosing a protocol must not look at the test split


def subsets(data: CondensedSet) -> dict[str, np.ndarray]:
    """Rows of different worth: easy and hard ones by their mean error in early training, balanced or not, and random ones."""
    error = record_run(data, epochs=30).training.error.mean(0)
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


def main() -> None:
    log = Path(sys.argv[1])
    names = sys.argv[2:] or ["quick", "paper"]
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    cifar = condense_once.open_source("cifar10")
    held = ArraySplit(cifar.train.take(HELD_BACK), cifar.train.labels[HELD_BACK])
    test = replace(cifar, name="cifar10 train 40000-49999", splits={"test": held})
    data = condense_once.load("cifar10-real-ipc10")
    chosen = subsets(data)
    for name in names:
        protocol = PROTOCOLS.get(name)
        for subset, rows in chosen.items():
            if any((entry["subset"], entry["protocol"]) == (subset, protocol.id) for entry in done):
                continue
            result = condense_once.evaluate(data.take(rows), test, protocol=protocol, repeats=REPEATS)
            seconds = sum(run.seconds for run in result.runs)
            entry = {
                "subset": subset,
                "protocol": protocol.id,
                "runs": [r.accuracy for r in result.runs],
                "seconds": seconds,
            }
            done.append(entry)
            with log.open("a") as out:
                out.write(json.dumps(entry) + "\n")
            print(entry, flush=True)
    ids = [PROTOCOLS.get(name).id for name in names]
    table = {p: [next(e for e in done if (e["subset"], e["protocol"]) == (s, p)) for s in chosen] for p in ids}
    means = {p: [float(np.mean(e["runs"])) for e in entries] for p, entries in table.items()}
    print(f"{cpu_model()}; n = {REPEATS} each; trained on 40 patches, tested on {test.name}")
    print(f"{'subset':18}" + "".join(f"{p:>20}" for p in ids))
    for k, subset in enumerate(chosen):
        print(f"{subset:18}" + "".join(f"{means[p][k]:13.2%} ±{np.std(table[p][k]['runs'], ddof=1):5.2%}" for p in ids))
    for p in ids[:-1]:
        rho = np.corrcoef(ranks(means[p]), ranks(means[ids[-1]]))[0, 1]
        cost = sum(e["seconds"] for e in table[p]) / sum(e["seconds"] for e in table[ids[-1]])
        print(f"{p} against {ids[-1]}: rank correlation {rho:.2f}, {cost:.0%} of the time")


if __name__ == "__main__":
    main()
