"""The real image that each patch resembles most: with an init of real images, usually the one it began as."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.class_matching import match_classes, open_test_source
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.sprite import Sprite, cell_pixels, draw_sprite, in_colour, scaled, tile_size
from condense_once.data.source import Source

MOST = 10_000  # images of a class that are compared
CHUNK = 1000  # images read at a time


@dataclass(frozen=True)
class RealImages:
    """One real image of its class per patch."""

    sprite: Sprite
    similarity: NDArray[np.float32]  # [N] correlation of pixels; 0 where the source has none of the class
    source: str


def nearest_real_images(data: CondensedSet, source: Source | str) -> RealImages:
    """For every patch the training image of its class with the highest correlation of pixels, at the size of the cells."""
    opened = open_test_source(data, source)
    pixels, _ = cell_pixels(data)
    of_source = match_classes(data, opened)
    labels = np.asarray(opened.train.labels)
    nearest, similarity = np.zeros(len(data), np.int64), np.zeros(len(data), np.float32)
    for label in np.unique(data.labels):
        members = np.flatnonzero(data.labels == label)
        rows = np.flatnonzero(of_source[labels] == label)[:MOST]
        for start in range(0, len(rows), CHUNK):
            some = rows[start : start + CHUNK]
            found = correlations(pixels[members], in_colour(opened.train.take(some)))
            best = found.argmax(1)
            better = found.max(1) > similarity[members]
            similarity[members[better]], nearest[members[better]] = found.max(1)[better], some[best[better]]
    images = in_colour(opened.train.take(nearest))
    sprite = draw_sprite(scaled(images, *tile_size((images.shape[2], images.shape[3]), len(images))))
    return RealImages(sprite, similarity, opened.name)


def correlations(patches: NDArray[np.uint8], images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Of each patch `[p, ch, h, w]` with each image `[n, ch, H, W]`, sampled as an init samples it, `[p, n]`."""
    rows, columns = (
        np.arange(small) * large // small for small, large in zip(patches.shape[2:], images.shape[2:], strict=True)
    )
    return _standardised(patches) @ _standardised(images[:, :, rows][..., columns]).T


def _standardised(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    flat = pixels.reshape(len(pixels), -1).astype(np.float32)
    flat -= flat.mean(1, keepdims=True)
    return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6))
