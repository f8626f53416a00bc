"""The real images that a condenser samples. Every choice is a function of the seed and a number, so none has to be saved."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from condense_once.data.source import Source
from condense_once.data.split import rows_by_class
from condense_once.kmeans import k_means
from condense_once.nets import Shape, penultimate
from condense_once.train.batches import Rows, ShuffledBatches, permutation
from condense_once.train.seeds import Stream, generator

CALIBRATION_IMAGES = 16  # per class, for batch-norm statistics, as in DC
FEATURE_BATCH = 100  # images that pass through a network at once


class RealImages:
    """The train split of a source: batches of one class, batches for the network, and k-means representatives."""

    def __init__(
        self,
        source: Source,
        seed: int,
        device: torch.device,
        *,
        real_batch: int,
        net_batch: int = 64,
        net_short_batch: bool = False,
        pool: int = 0,
    ) -> None:
        """`real_batch` images of a class and `net_batch` of all at a time; k-means runs on `pool` of a class, 0 for all."""
        self.source, self.seed, self.device = source, seed, device
        self.normalise = Normaliser(source, device)
        self.rows = rows_by_class(np.asarray(source.train.labels), len(source.classes))
        self._pool = pool
        self._class_batches = [
            ShuffledBatches(rows, real_batch, seed, Stream.REAL_BATCHES, label) for label, rows in enumerate(self.rows)
        ]
        self._net_batches = ShuffledBatches(
            np.arange(len(self)), net_batch, seed, Stream.NET_BATCHES, keep_short=net_short_batch
        )

    def __len__(self) -> int:
        return len(self.source.train.labels)

    @property
    def shape(self) -> Shape:
        return self.source.train.shape

    def pixels(self, rows: Rows) -> Tensor:
        """Images `[n, ch, h, w]` on the scale 0…1."""
        return torch.from_numpy(self.source.train.take(rows)).to(self.device).float() / 255

    def class_batch(self, label: int, number: int) -> Rows:
        return self._class_batches[label][number]

    def net_batch(self, number: int) -> tuple[Tensor, Tensor]:
        """Normalised images and labels of the `number`-th batch that the network is trained on."""
        rows = self._net_batches[number]
        labels = torch.from_numpy(np.asarray(self.source.train.labels)[rows]).to(self.device)
        return self.normalise(self.pixels(rows)), labels

    def calibration_batch(self, number: int) -> Tensor:
        """Normalised images of all classes, to estimate batch-norm statistics."""
        each = (
            ShuffledBatches(rows, CALIBRATION_IMAGES, self.seed, Stream.BATCH_NORM, label)[number]
            for label, rows in enumerate(self.rows)
        )
        return self.normalise(self.pixels(np.concatenate(list(each))))

    def representatives(self, label: int, count: int, net: nn.Module, number: int) -> Rows:
        """Of each of `count` k-means clusters of a class, the image nearest to the centroid, in the features of `net`.

        `number` tells one selection from another. As in DREAM, the images are not normalised here.
        """
        most = max(self._pool, count) if self._pool else 0
        rows = subsample(self.rows[label], most, self.seed, Stream.POOL, label, number)
        rng = np.random.default_rng(generator(self.seed, Stream.KMEANS, label, number).initial_seed())
        return rows[nearest_to_centroids(self.features(rows, net), min(count, len(rows)), rng)]

    def features(self, rows: Rows, net: nn.Module) -> NDArray[np.float32]:
        """What the last layer of `net` reads for these images, which are not normalised."""
        net.eval()
        with torch.inference_mode():
            parts = [
                penultimate(net, self.pixels(rows[at : at + FEATURE_BATCH])).float().cpu().numpy()
                for at in range(0, len(rows), FEATURE_BATCH)
            ]
        return np.concatenate(parts)


class Normaliser:
    """`(pixels − mean) / std` on tensors."""

    def __init__(self, source: Source, device: torch.device) -> None:
        self.mean = torch.tensor(source.mean, device=device)[:, None, None]
        self.std = torch.tensor(source.std, device=device)[:, None, None]

    def __call__(self, pixels: Tensor) -> Tensor:
        return (pixels - self.mean) / self.std


def nearest_to_centroids(features: NDArray[np.float32], count: int, rng: np.random.Generator) -> Rows:
    """Of each of `count` k-means clusters of `features` [n, d] the row nearest to the centroid, ascending; ties by row.

    >>> points = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> nearest_to_centroids(points, 2, np.random.default_rng(0)).tolist()
    [1, 4]
    """
    return k_means(features, count, rng).nearest(ties=np.arange(len(features)))


def subsample(rows: Rows, most: int, seed: int, *purpose: str | int) -> Rows:
    """At most `most` of the rows, sampled without replacement, in their order; all of them for 0.

    >>> subsample(np.arange(5), 0, 0).tolist(), len(subsample(np.arange(100), 7, 0))
    ([0, 1, 2, 3, 4], 7)
    """
    if not most or len(rows) <= most:
        return rows
    sampled: Rows = np.sort(rows[permutation(len(rows), seed, *purpose)[:most]])
    return sampled
