"""Prepare a condensed set for bundling: rank it, evaluate it, and record both in its header.

    condense-once condense cifar10 --method idc --ipc 10 … -o FILE
    python tools/ship.py FILE --command "condense-once condense cifar10 …" [--repeats 3] [--protocols quick paper]

It is ranked by YOCO, which uses no real images, and evaluated on the full test split of its source. A second call, with
the file that the first wrote and another protocol, adds to the recorded accuracies.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import condense_once
from condense_once.condensed.bundled import FOLDER
from condense_once.evaluation.result import Result


def accuracy_entry(result: Result) -> dict[str, Any]:
    """An accuracy and how it was measured."""
    return {
        "protocol": result.protocol,
        "net": result.net,
        "test": f"{result.test_images} images of {result.test}",
        "mean, %": round(100 * result.mean, 2),
        "sample std": round(100 * result.std, 2),
        "runs": len(result.runs),
        "date": datetime.now(UTC).date().isoformat(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--command", required=True, help="the command that made the file")
    parser.add_argument("--source", default="cifar10")
    parser.add_argument("--protocols", nargs="+", default=["quick", "paper"])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    ranked = condense_once.rank(condense_once.load(args.file))
    measured = {entry["protocol"]: entry for entry in ranked.provenance.get("accuracy", [])}
    for protocol in args.protocols:
        result = condense_once.evaluate(
            ranked, condense_once.open_source(args.source), protocol=protocol, repeats=args.repeats
        )
        measured[result.protocol] = accuracy_entry(result)
        print(measured[result.protocol], flush=True)
        provenance = {**ranked.provenance, "command": args.command, "accuracy": list(measured.values())}
        condense_once.save(replace(ranked, provenance=provenance), FOLDER / f"{ranked.name}.safetensors", force=True)


if __name__ == "__main__":
    main()
