"""Make the bundled data from CIFAR-10; run `condense-once data get cifar10` first.

* `cifar10-sample.zip`: the first 100 test images of each class;
* `cifar10-real-ipc10.safetensors`: the first 40 training images of each class, as 10 mosaics of 2×2, the init of IDC;
  classes alternate.
"""

from __future__ import annotations

import numpy as np

from condense_once.condensed.bundled import FOLDER
from condense_once.condensed.file import save
from condense_once.condensed.mosaic import encode
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.open import open_source
from condense_once.data.source import ArraySplit, Source, Split
from condense_once.data.webp_zip import save_webp_zip

IPC, FACTOR = 10, 2


def first_of_each(split: Split, classes: int, count: int) -> np.ndarray:
    """Rows of the first `count` images of each class, class by class."""
    return np.concatenate([np.flatnonzero(split.labels == label)[:count] for label in range(classes)])


def make_sample(cifar: Source) -> None:
    rows = np.sort(first_of_each(cifar.test, len(cifar.classes), 100))
    sample = ArraySplit(cifar.test.take(rows), cifar.test.labels[rows])
    target = FOLDER / "cifar10-sample.zip"
    target.unlink(missing_ok=True)
    save_webp_zip(Source("cifar10-sample", cifar.classes, cifar.mean, cifar.std, {"test": sample}), target)


def make_set(cifar: Source) -> None:
    classes, per_class = len(cifar.classes), IPC * FACTOR**2
    images = cifar.train.take(first_of_each(cifar.train, classes, per_class))
    mosaics = np.concatenate([encode(one, FACTOR) for one in np.split(images, classes)])
    data = CondensedSet.from_mosaics(
        mosaics,
        np.repeat(np.arange(classes), IPC),
        factor=FACTOR,
        space=Space("pixels", cifar.mean, cifar.std),
        classes=cifar.classes,
        name="cifar10-real-ipc10",
        provenance={
            "method": "real patches, not condensed: the first 40 training images of each class, shrunk by nearest neighbour",
            "order": "a patch of every class in turn",
            "source": "CIFAR-10 (Krizhevsky 2009), train split",
            "command": "python tools/bundle.py",
        },
    )
    in_turn = np.argsort(np.arange(len(data)) % per_class, kind="stable")  # the first k·10 patches are k of each class
    save(data.take(in_turn), FOLDER / f"{data.name}.safetensors", force=True)


def main() -> None:
    cifar = open_source("cifar10")
    make_sample(cifar)
    make_set(cifar)


if __name__ == "__main__":
    main()
