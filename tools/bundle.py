"""Make the data that come with the package, from CIFAR-10: condense-once data get cifar10, then run this.

* `cifar10-sample.zip`: the first 100 test images of each class;
* `cifar10-real-ipc10.safetensors`: the first 40 training images of each class, as 10 mosaics of 2 × 2: what IDC starts from.
"""

from __future__ import annotations

import numpy as np

from condense_once.condensed.bundled import FOLDER
from condense_once.condensed.file import save
from condense_once.condensed.mosaic import encode
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.opening import open_source
from condense_once.data.source import ArraySplit, Source, Split
from condense_once.data.strips import save_strips

IPC, FACTOR = 10, 2


def first_of_each(split: Split, classes: int, count: int) -> np.ndarray:
    """Rows of the first `count` images of each class, class by class."""
    return np.concatenate([np.flatnonzero(split.labels == label)[:count] for label in range(classes)])


def main() -> None:
    cifar = open_source("cifar10")
    classes = len(cifar.classes)

    rows = np.sort(first_of_each(cifar.test, classes, 100))
    sample = ArraySplit(cifar.test.take(rows), cifar.test.labels[rows])
    target = FOLDER / "cifar10-sample.zip"
    target.unlink(missing_ok=True)
    save_strips(Source("cifar10-sample", cifar.classes, cifar.mean, cifar.std, {"test": sample}), target)

    images = cifar.train.take(first_of_each(cifar.train, classes, IPC * FACTOR**2))
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
            "source": "CIFAR-10 (Krizhevsky 2009), train split",
            "command": "python tools/bundle.py",
        },
    )
    save(data, FOLDER / "cifar10-real-ipc10.safetensors", force=True)


if __name__ == "__main__":
    main()
