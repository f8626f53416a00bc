"""Reading the first 1 % of a ranked 1 GB file against reading all of it, each in its own process.

Claim: less than 5 % of the time and of the peak memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from machine import cpu_model

from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space

PATCHES = 1_300_000  # of 3×16×16 bytes: 0.998 GB of cells
REPEATS = 5

READER = """
import json, sys, time
from pathlib import Path
from condense_once.condensed.bundled import load

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

before = peak()
start = time.perf_counter()
data = load(sys.argv[1], first=int(sys.argv[2]) or None)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "peak": peak(), "grown": peak() - before}))
"""


def make(path: Path) -> None:
    rng = np.random.default_rng(0)
    data = CondensedSet(
        cells=rng.integers(0, 256, (PATCHES, 3, 16, 16), dtype=np.uint8),
        labels=np.arange(PATCHES) % 100,
        classes=tuple(f"class {label}" for label in range(100)),
        size=(32, 32),
        factor=2,
        space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        origin=rng.permutation(PATCHES),
        scores={"lbpe": np.sort(rng.random(PATCHES, dtype=np.float32))},
        ranking=Ranking("lbpe"),
    )
    save(data, path)


def measure(path: Path, first: int) -> dict[str, float]:
    runs = [
        json.loads(
            subprocess.run([sys.executable, "-c", READER, path, str(first)], capture_output=True, check=True).stdout
        )
        for _ in range(REPEATS)
    ]
    return {key: float(np.median([run[key] for run in runs])) for key in runs[0]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ranked.safetensors")
        make(path)
        size = path.stat().st_size / 2**20
        whole, part = measure(path, 0), measure(path, PATCHES // 100)
    print(f"{cpu_model()}; file of {size:.0f} MiB, {PATCHES:,} patches; median of {REPEATS} processes each")
    print(f"{'':14}{'whole':>12}{'first 1 %':>12}{'ratio':>9}")
    for key, unit in (("seconds", "s"), ("grown", "MiB beyond the interpreter"), ("peak", "MiB in total")):
        print(f"{key:14}{whole[key]:12.4f}{part[key]:12.4f}{part[key] / whole[key]:9.2%}  {unit}")
    if part["seconds"] >= 0.05 * whole["seconds"] or part["peak"] >= 0.05 * whole["peak"]:
        sys.exit("The claim does not hold on this machine.")


if __name__ == "__main__":
    main()
