"""Condensing a folder of images against the same images as an `.npz`: reading a batch, and one class step of IDC.

The folder holds PNG files of 96×96, resized to 32×32; they are decoded once, into the cache, when it is opened.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import torch
from bench_matching import FACTOR, IPC, REAL, examples, our_parts
from machine import best_in_turns, cpu_model
from PIL import Image

from condense_once.augment import Augmentation
from condense_once.condensing.real_images import ShuffledBatches
from condense_once.data.arrays import save_npz
from condense_once.data.image_folder import load_image_folder
from condense_once.data.open import open_source
from condense_once.data.source import Source
from condense_once.data.split import rows_by_class
from condense_once.train.seeds import generator

CLASSES, EACH, TURNS = 10, 80, 10


def make_folder(root: Path) -> None:
    rng = np.random.default_rng(0)
    for label in range(CLASSES):
        (root / str(label)).mkdir(parents=True)
        for number in range(EACH):
            pixels = rng.integers(0, 256, (96, 96, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / str(label) / f"{number}.png", compress_level=1)


def class_step(source: Source) -> Callable[[], None]:
    """Read a batch of one class as the loop does, then match it."""
    images, real = examples()
    _, _, step = our_parts(real)
    batches = [ShuffledBatches(rows, REAL, 0, "benchmark") for rows in rows_by_class(source.train.labels, CLASSES)]
    sampling, augmentation = generator(0, "augmentation"), Augmentation.parse("color_crop_cutout")
    patches, turns = torch.arange(IPC * FACTOR**2), count()

    def run() -> None:
        turn = next(turns)
        label = turn % CLASSES
        pixels = torch.from_numpy(source.train.take(batches[label][turn])).float() / 255
        step(images, pixels, torch.tensor(label), patches, augmentation.sample_shared((32, 32), sampling))

    return run


def cpu_in_turns(turns: int, *candidates: Callable[[], None]) -> list[float]:
    """The minimum CPU seconds of each, taken in turns; unlike wall-clock time, they hold on a busy machine, too."""
    best = [float("inf")] * len(candidates)
    for _ in range(turns + 1):  # the first warms up, and is never the fastest
        for k, candidate in enumerate(candidates):
            start = time.process_time()
            candidate()
            best[k] = min(best[k], time.process_time() - start)
    return best


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.environ["CONDENSE_ONCE_CACHE"] = place
        folder, packed = Path(place, "photos"), Path(place, "photos.npz")
        make_folder(folder)
        start = time.perf_counter()
        cached = open_source(folder, size=32)
        first = time.perf_counter() - start
        save_npz(cached, packed)
        arrays, decoding = open_source(packed), load_image_folder(folder, size=32)
        rows = np.random.default_rng(1).permutation(CLASSES * EACH)[:REAL]
        takes = best_in_turns(TURNS, *((lambda one=one: one.train.take(rows)) for one in (cached, arrays, decoding)))
        steps = cpu_in_turns(TURNS, *(class_step(one) for one in (cached, arrays)))
    print(f"{cpu_model()}; {torch.get_num_threads()} threads; {CLASSES * EACH} images; best of {TURNS} in turns")
    print(f"opening the folder for the first time {first:8.2f} s")
    for what, seconds in zip(("folder", ".npz", "folder, decoded as needed"), takes, strict=True):
        print(f"{REAL} images of the {what:27} {seconds * 1e3:8.3f} ms")
    for what, seconds in zip(("folder", ".npz"), steps, strict=True):
        print(f"class step on the {what:27} {seconds * 1e3:8.1f} ms of CPU time")
    print(f"class step, folder / .npz {steps[0] / steps[1]:.3f}")


if __name__ == "__main__":
    main()
