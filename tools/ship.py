"""Prepare a condensed set for shipping: rank it, evaluate it, and record both in its header.

    condense-once condense cifar10 --method idc --ipc 10 … -o FILE
    python tools/ship.py FILE --command "condense-once condense cifar10 …" [--repeats 3] [--protocols quick paper]

It is ranked by YOCO, which uses no real images, unless it is nested, and evaluated on the full test split of its source. A
second call, with the file that the first wrote and another protocol, adds to the recorded accuracies. `--folder` is where the
file goes: by default among the sets bundled with the package, or `sets/src/condense_once_sets`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
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
    parser.add_argument("--name", help="another name for the set")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    args = parser.parse_args()
    data = condense_once.load(args.file)
    ranked = data if data.is_nested else condense_once.rank(data)
    ranked = replace(ranked, name=args.name or ranked.name)
    measured = {entry["protocol"]: entry for entry in ranked.provenance.get("accuracy", [])}
    for protocol in args.protocols:
        result = condense_once.evaluate(
            ranked, condense_once.open_source(args.source), protocol=protocol, repeats=args.repeats
        )
        measured[result.protocol] = accuracy_entry(result)
        print(measured[result.protocol], flush=True)
        provenance = {**ranked.provenance, "command": args.command, "accuracy": list(measured.values())}
        condense_once.save(
            replace(ranked, provenance=provenance), args.folder / f"{ranked.name}.safetensors", force=True
        )


if __name__ == "__main__":
    main()
