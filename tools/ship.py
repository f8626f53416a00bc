"""Make a condensed set ready to come with the package: rank it, measure it, and write both into its header.

    condense-once condense cifar10 --method idc --ipc 10 … -o FILE
    python tools/ship.py FILE --command "condense-once condense cifar10 …" [--repeats 3] [--protocols quick paper]

It is ranked by YOCO, which looks at no real image, and evaluated on the whole test split of the source it was made from. A
second call, with the file that the first wrote and another protocol, adds to what is said of it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import condense_once
from condense_once.condensed.bundled import FOLDER
from condense_once.evaluation.result import Result


def told(result: Result) -> dict[str, Any]:
    """An accuracy with all that it depends on."""
    return {
        "protocol": result.protocol,
        "net": result.net,
        "test": f"{result.test_images} images of {result.test}",
        "mean, %": round(100 * result.mean, 2),
        "sample deviation": round(100 * result.std, 2),
        "runs": len(result.runs),
        "date": datetime.now(UTC).date().isoformat(),
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("file")
    words.add_argument("--command", required=True, help="that made the file")
    words.add_argument("--source", default="cifar10")
    words.add_argument("--protocols", nargs="+", default=["quick", "paper"])
    words.add_argument("--repeats", type=int, default=3)
    given = words.parse_args()
    ranked = condense_once.rank(condense_once.load(given.file))
    measured = {entry["protocol"]: entry for entry in ranked.provenance.get("accuracy", [])}
    for protocol in given.protocols:
        result = condense_once.evaluate(
            ranked, condense_once.open_source(given.source), protocol=protocol, repeats=given.repeats
        )
        measured[result.protocol] = told(result)
        print(measured[result.protocol], flush=True)
        provenance = {**ranked.provenance, "command": given.command, "accuracy": list(measured.values())}
        condense_once.save(replace(ranked, provenance=provenance), FOLDER / f"{ranked.name}.safetensors", force=True)


if __name__ == "__main__":
    main()
