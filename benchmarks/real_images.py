"""What an engineer would store without this package: real training images as small WebP, AVIF or JPEG files.

    python benchmarks/real_images.py formats [--images 64]               # bytes and error of every format
    python benchmarks/real_images.py choose LOG [--bytes 1024 3072 …]    # what `CHOSEN` is from; about 25 minutes on one core

An image is stored at full or half resolution, in a file of its own or in a sheet of all images of its class, which has one
header and costs far less. Within given bytes a lower quality leaves room for more images; `choose` tries qualities on held-out
training images. Every file counts with all its bytes, and every image with one more for its label.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from log import Log
from numpy.typing import NDArray
from PIL import Image

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.kmeans import k_means
from condense_once.nets import penultimate
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import DataSpec
from condense_once.train.seeds import generator
from condense_once.train.trainer import Trainer

How = Literal["random", "k-means"]
Pixels = NDArray[np.uint8]

OPTIONS: dict[str, Callable[[int], dict[str, Any]]] = {
    "webp": lambda quality: {"quality": quality, "method": 6},
    "avif": lambda quality: {"quality": quality, "speed": 4, "max_threads": 1},  # slower speeds save 3 % more
    "jpeg": lambda quality: {"quality": quality, "optimize": True},
}
LABEL = 1  # byte
STORABLE = 40_000  # training images; those after them are for choosing, which must not see the test split
GUESSES = 6  # of the number of images that fit
POOL = 1_000  # images of a class that k-means selects representatives from
NET = "convnet-d3-w32"  # for choosing, and for the features of k-means
PASSES, EPOCHS = 30_000, (12, 300)  # a network is trained on about so many images to choose, in fewest and most epochs


@dataclass(frozen=True)
class Storage:
    """How real images are stored."""

    format: str
    quality: int
    factor: int  # that the resolution is divided by
    sheet: bool  # one file for all images of a class, instead of one for each

    def __str__(self) -> str:
        files = "a sheet per class" if self.sheet else "a file each"
        return (
            f"{self.format} {self.quality} at {'full' if self.factor == 1 else f'1/{self.factor}'} resolution, {files}"
        )

    def encode(self, images: Pixels) -> list[bytes]:
        """The files of the images `[n, h, w, 3]` of a class."""
        small = images if self.factor == 1 else np.stack([_shrunk(image, self.factor) for image in images])
        pictures = [_sheet(small)] if self.sheet else list(small)
        return [self._file(picture) for picture in pictures]

    def decode(self, files: Sequence[bytes], count: int, side: int) -> Pixels:
        """The cells `[n, 3, s, s]` in these files, of images `side` pixels wide."""
        pictures = [np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files]
        small = _parts(pictures[0], side // self.factor)[:count] if self.sheet else np.stack(pictures)
        return np.ascontiguousarray(small.transpose(0, 3, 1, 2))

    def _file(self, picture: Pixels) -> bytes:
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, self.format, **OPTIONS[self.format](self.quality))
        return buffer.getvalue()


# By bytes per class and whether images share a sheet, as `choose` found them up to 6,144 bytes; above, as the trend has it.
CHOSEN: dict[tuple[int, bool], Storage] = {
    (1_024, True): Storage("avif", 15, 2, sheet=True),
    (1_024, False): Storage("webp", 40, 2, sheet=False),
    (3_072, True): Storage("avif", 15, 1, sheet=True),
    (3_072, False): Storage("webp", 5, 1, sheet=False),
    (6_144, True): Storage("avif", 15, 1, sheet=True),
    (6_144, False): Storage("webp", 5, 1, sheet=False),
    (12_288, True): Storage("avif", 30, 1, sheet=True),
    (12_288, False): Storage("webp", 5, 1, sheet=False),
    (30_720, True): Storage("avif", 30, 1, sheet=True),
    (30_720, False): Storage("webp", 40, 1, sheet=False),
}


def _shrunk(image: Pixels, factor: int) -> Pixels:
    height, width = image.shape[0] // factor, image.shape[1] // factor
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BOX))


def _sheet(images: Pixels) -> Pixels:
    """Images `[n, s, s, 3]` row by row in one that is about square, the rest grey."""
    count, side = images.shape[:2]
    across = int(np.ceil(np.sqrt(count)))
    down = -(-count // across)
    filled = np.concatenate([images, np.full((down * across - count, *images.shape[1:]), 128, np.uint8)])
    grid = filled.reshape(down, across, side, side, 3).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(grid.reshape(down * side, across * side, 3))


def _parts(sheet: Pixels, side: int) -> Pixels:
    down, across = sheet.shape[0] // side, sheet.shape[1] // side
    return sheet.reshape(down, side, across, side, 3).transpose(0, 2, 1, 3, 4).reshape(-1, side, side, 3)


@dataclass(frozen=True)
class RealImages:
    """The training images that may be stored."""

    source: Source
    seed: int = 0

    def stored(self, limit: int, storage: Storage, how: How) -> tuple[CondensedSet, int]:
        """As many images of every class as fit `limit` bytes per class, as they are decoded, and the bytes of all of them."""
        count, files = _most(
            limit * len(self._rows), min(map(len, self._rows)), lambda count: self._files(count, storage, how)
        )
        side = self.source.train.shape[1]
        cells = np.concatenate([storage.decode(each, count, side) for each in files])
        data = CondensedSet(
            cells=cells,
            labels=np.repeat(np.arange(len(files)), count),
            classes=self.source.classes,
            size=(side, side),
            factor=storage.factor,
            space=Space("pixels", self.source.mean, self.source.std),
            origin=np.arange(len(cells)),
            name=f"{how} images, {storage}",
        )
        return data, _size(files, count)

    def _files(self, count: int, storage: Storage, how: How) -> list[list[bytes]]:
        taken = (self.source.train.take(self.rows(how, label, count)) for label in range(len(self._rows)))
        return [storage.encode(images.transpose(0, 2, 3, 1)) for images in taken]

    def rows(self, how: How, label: int, count: int) -> NDArray[np.int64]:
        """`count` images of a class: random ones, or those nearest to the centroids of k-means clusters."""
        rows = self._rows[label]
        if how == "random":
            return rows[:count]
        clusters = k_means(self._features[label], count, np.random.default_rng(self.seed))
        return rows[clusters.nearest(ties=np.arange(POOL))]

    @cached_property
    def _rows(self) -> list[NDArray[np.int64]]:
        """Of every class, in random order."""
        labels, rng = np.asarray(self.source.train.labels)[:STORABLE], np.random.default_rng(self.seed)
        return [rng.permutation(np.flatnonzero(labels == label)) for label in range(len(self.source.classes))]

    @cached_property
    def _features(self) -> list[NDArray[np.float32]]:
        """Of the first images of every class, in a network trained on half of them."""
        pools = [condense_once.coreset(self.source, rows[:POOL]) for rows in self._rows]
        images = [torch.from_numpy(pool.inputs()) for pool in pools]
        train = torch.cat([each[: POOL // 2] for each in images])
        labels = torch.arange(len(pools)).repeat_interleave(POOL // 2)
        recipe = replace(PROTOCOLS.get("quick").small, epochs=10)
        trainer = Trainer(
            NET,
            DataSpec.of(pools[0]),
            recipe,
            passes=10 * len(train),
            compute=ComputeConfig("float32"),
        )
        weights, batches = generator(self.seed, "k-means", "weights"), generator(self.seed, "k-means", "batches")
        trainer.fit(train, labels, weights=weights, batches=batches)
        trainer.net.eval()
        with torch.inference_mode():
            return [penultimate(trainer.net, each).numpy() for each in images]


def _size(files: Sequence[Sequence[bytes]], count: int) -> int:
    return sum(len(file) + LABEL * count // len(each) for each in files for file in each)


def _most(limit: int, there: int, encode: Callable[[int], list[list[bytes]]]) -> tuple[int, list[list[bytes]]]:
    """The largest number of images of each class, of which `there` are, whose files fit, as far as a few guesses tell."""
    fits: dict[int, list[list[bytes]]] = {}
    low, high, count = 0, there + 1, min(8, there)
    for _ in range(GUESSES):
        files = encode(count)
        size = _size(files, count)
        if size <= limit:
            low, fits[count] = count, files
        else:
            high = count
        if high - low <= 1:
            break
        count = min(max(count * limit // size, low + 1), high - 1)
    if not fits:
        raise SystemExit(f"Not even one image of every class fits {limit:,} bytes.")
    return low, fits[low]


def formats(source: Source, images: int) -> None:
    """Bytes and error of the same images in every format."""
    pixels = source.train.take(np.flatnonzero(np.asarray(source.train.labels) == 3)[:images])
    print("| stored as | bytes per image | error, root mean square of pixels |\n|---|---|---|")
    for factor in (1, 2):
        for sheet in (False, True):
            for name in OPTIONS:
                for quality in (5, 15, 30, 50, 75):
                    storage = Storage(name, quality, factor, sheet)
                    files = storage.encode(pixels.transpose(0, 2, 3, 1))
                    cells = storage.decode(files, images, pixels.shape[2])
                    error = float(np.sqrt(np.square(_upsampled(cells, pixels) - pixels).mean()))
                    print(f"| {storage} | {sum(map(len, files)) / images:.0f} | {error:.1f} |", flush=True)


def _upsampled(cells: Pixels, like: Pixels) -> NDArray[np.float64]:
    factor = like.shape[2] // cells.shape[2]
    space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
    labels = np.zeros(len(cells), np.int64)
    data = CondensedSet(cells, labels, ("one",), like.shape[2:], factor, space, np.arange(len(cells)))  # type: ignore[arg-type]
    return 255 * data.patches().astype(np.float64)


def choose(source: Source, log: Log, limits: Sequence[int]) -> None:
    """Try every quality, the accuracy on held-out images of a network trained on what fits, and print the best."""
    held_out = ArraySplit(source.train.take(slice(STORABLE, None)), np.asarray(source.train.labels)[STORABLE:])
    test = replace(source, name=f"{source.name} train {STORABLE} onwards", splits={"test": held_out})
    real = RealImages(source)
    for limit in limits:
        for storage in candidates(limit):
            key = {"bytes": limit, "storage": str(storage)}
            if log.find(**key):
                continue
            data, size = real.stored(limit, storage, "random")
            count = len(data) // len(source.classes)
            epochs = int(np.clip(PASSES / len(data), *EPOCHS))
            quick = PROTOCOLS.get("quick")
            protocol = replace(quick, name="short", small=replace(quick.small, epochs=epochs))
            result = condense_once.evaluate(
                data, test, protocol=protocol, net=NET, repeats=1, compute=ComputeConfig("float32")
            )
            log.add(**key, sheet=storage.sheet, images=count, size=size, accuracy=result.mean, seconds=result.seconds)
    for limit in limits:
        for sheet in (False, True):
            found = [entry for entry in log.entries if (entry["bytes"], entry["sheet"]) == (limit, sheet)]
            print(limit, max(found, key=lambda entry: float(entry["accuracy"]))["storage"])


def candidates(limit: int) -> list[Storage]:
    """Of the format with the least error at equal bytes: WebP for single files, AVIF for sheets (`formats`).

    At 3,072 bytes a class half the resolution was no better any more, so it is not tried above.
    """
    factors = (1, 2) if limit <= 3_072 else (1,)
    sheets = [Storage("avif", quality, factor, True) for factor in factors for quality in (15, 30, 50)]
    files = [Storage("webp", quality, factor, False) for factor in factors for quality in (5, 40)]
    return sheets + files


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("formats")
    command.add_argument("--images", type=int, default=64)
    command = commands.add_parser("choose")
    command.add_argument("log", type=Path)
    command.add_argument("--bytes", nargs="+", type=int, default=[1024, 3072, 6144, 12288, 30720])
    args = parser.parse_args()
    source = condense_once.open_source("cifar10")
    if args.command == "formats":
        formats(source, args.images)
    else:
        torch.set_num_threads(1)
        choose(source, Log(args.log), args.bytes)


if __name__ == "__main__":
    main()
