"""Time per patch and epoch, and memory, at 400, 4,000 and 40,000 patches: the cost per patch must not depend on the size.

Claim: times are within 20 % of each other; memory grows by the data alone. Each size has its own process; takes about five
minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys

from machine import cpu_model

PASSES = 12_000  # patches × epochs of each measurement, after compilation

CHILD = """
import json, sys, time
from pathlib import Path
import torch
from condense_once.condensed.space import Space
from condense_once.train.images import DataSpec
from condense_once.train.memory import keep_freed_memory
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer
from condense_once.train.seeds import generator
from condense_once.train.compute_config import ComputeConfig

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

keep_freed_memory()
torch.set_num_threads(1)
count, passes = int(sys.argv[1]), int(sys.argv[2])
inputs, labels = torch.randn(count, 3, 32, 32, generator=generator(0, "x")), torch.arange(count) % 10
space, compute = Space("pixels", (0.5,) * 3, (0.25,) * 3), ComputeConfig(compilation="on")
trainer = Trainer("convnet-d3", DataSpec((3, 32, 32), 10, space), Recipe(), passes=0, compute=compute)
trainer.fit(inputs[:128], labels[:128], weights=generator(0, "w"), batches=generator(0, "b"), epochs=1)
seen, start = 0, time.perf_counter()

class Measured(Exception):
    pass

def count_rows(epoch, rows, logits):
    global seen
    seen += len(rows)
    if seen >= passes:
        raise Measured

try:
    trainer.fit(inputs, labels, weights=generator(0, "w"), batches=generator(0, "b"), on_batch=count_rows)
except Measured:
    pass
print(json.dumps({"ms": (time.perf_counter() - start) / seen * 1e3, "data": inputs.nbytes / 2**20, "peak": peak()}))
"""


def main() -> None:
    print(f"{cpu_model()}; one thread; {PASSES} patches each")
    results = {}
    for count in (400, 4000, 40_000):
        run = subprocess.run(
            [sys.executable, "-c", CHILD, str(count), str(PASSES)], capture_output=True, check=True, text=True
        )
        results[count] = json.loads(run.stdout.splitlines()[-1])
        ms, data, peak = (results[count][key] for key in ("ms", "data", "peak"))
        print(
            f"N = {count:6}: {ms:.2f} ms per patch and epoch; data {data:.0f} MiB, other memory {peak - data:.0f} MiB"
        )
    times = [result["ms"] for result in results.values()]
    print(f"slowest / fastest: {max(times) / min(times):.2f}")


if __name__ == "__main__":
    main()
