"""Scoring a million training images by their dynamics: memory beyond the interpreter, disk, time per image and epoch.

Claim: memory does not grow with the number of images. They are a memory-mapped file of 8-bit pixels, read batch by batch;
dynamics are memory-mapped files, too. Each size has its own process. Pages of mapped files, which the system can reclaim, are
counted separately. Takes about three minutes; pass other numbers of images to change it.
"""

from __future__ import annotations

import json
import subprocess
import sys

from machine import cpu_model

SIDE, CHANNELS, EPOCHS, BATCH = 8, 3, 2, 256

CHILD = """
import json, sys, tempfile, time
from pathlib import Path
import numpy as np
import torch
from torch import nn
import condense_once
from condense_once.data.source import ArraySplit, Source
from condense_once.metrics import Epochs, MetricConfig
from condense_once.train.recipe import Recipe

torch.set_num_threads(1)
count, side, channels, epochs, batch = map(int, sys.argv[1:])

def memory(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024

def tiny(shape, classes):
    return nn.Sequential(nn.Conv2d(shape[0], 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(8 * (shape[1] // 2) * (shape[2] // 2), classes))

def score(images, folder, progress=None):
    labels = np.arange(len(images)) % 10
    source = Source("synthetic", tuple("abcdefghij"), (0.5,) * channels, (0.25,) * channels,
                    {"train": ArraySplit(images, labels)})
    config = MetricConfig(scoring_epochs=epochs, lbpe_epochs=Epochs.all(), el2n_epochs=1)
    return condense_once.score_source(source, "lbpe", net=tiny, recipe=Recipe(batch=batch), config=config,
                                      folder=folder, progress=progress)

with tempfile.TemporaryDirectory() as folder:
    place = Path(folder)
    images = np.lib.format.open_memmap(place / "images.npy", "w+", np.uint8, (count, channels, side, side))
    rng = np.random.default_rng(0)
    for start in range(0, count, 10_000):
        images[start:start + 10_000] = rng.integers(0, 256, images[start:start + 10_000].shape, dtype=np.uint8)
    images.flush()
    images = np.load(place / "images.npy", mmap_mode="r")
    for name in ("warm", "recorded"):
        (place / name).mkdir()
    score(np.array(images[:1024]), place / "warm")
    before, mapped, peak = memory("RssAnon"), memory("RssFile"), []
    start = time.perf_counter()
    scores = score(images, place / "recorded", lambda done, total: peak.append(memory("RssAnon")))
    seconds = time.perf_counter() - start
    recorded = sum(path.stat().st_size for path in (place / "recorded").iterdir())
assert np.isfinite(scores).all() and len(scores) == count
print(json.dumps({"grown": max(peak) - before, "mapped": memory("RssFile") - mapped, "recorded": recorded / 2**20,
                  "floats": count * channels * side**2 * 4 / 2**20, "us": seconds / count / epochs * 1e6, "seconds": seconds}))
"""


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]] or [400_000, 1_000_000]  # fewer fit in memory and are loaded
    print(
        f"{cpu_model()}; one thread; {CHANNELS}×{SIDE}×{SIDE}, {EPOCHS} epochs in batches of {BATCH}, augmented, a tiny network"
    )
    for count in counts:
        sizes = [str(number) for number in (count, SIDE, CHANNELS, EPOCHS, BATCH)]
        run = subprocess.run([sys.executable, "-c", CHILD, *sizes], capture_output=True, check=True, text=True)
        found = json.loads(run.stdout.splitlines()[-1])
        print(
            f"N = {count:9,}: {found['grown']:6.0f} MiB beyond the interpreter and a small run, {found['mapped']:.0f} MiB of"
            f" mapped files; as floats the images are {found['floats']:.0f} MiB"
        )
        print(
            f"{'':15}E × N arrays on disk {found['recorded']:.0f} MiB; {found['us']:.0f} µs per image and epoch,"
            f" {found['seconds']:.0f} s in total"
        )


if __name__ == "__main__":
    main()
