"""What image files rarely contain: class names and normalisation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from condense_once.data.catalogue import recognise
from condense_once.data.source import Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile, BadOption
from condense_once.text import short_line

SAMPLE = 10_000  # images to compute mean and std on; more would change the third digit at most
CHUNK_BYTES = 1 << 24  # of images in memory at a time


def make_source(
    name: str,
    splits: Mapping[SplitName, Split],
    *,
    classes: tuple[str, ...] | None = None,
    like: SourceInfo | None = None,
) -> Source:
    """A source of these splits.

    Mean and std are those of `like`, else of the known dataset with the same classes, else computed. Without `classes`,
    class names are those of `like`, else numbers.
    """
    if not splits or not all(len(split.labels) for split in splits.values()):
        raise BadFile(f"{name} holds no images.")
    channels = next(iter(splits.values())).shape[0]
    known = like or (recognise(classes, channels) if classes else None)
    mean, std = _of(known, name, channels) if known else channel_stats(splits.get("train") or splits["test"])
    names = classes or (like.classes if like else _numbers(name, splits))
    return Source(name, names, mean, std, splits)


def normalised_like(source: Source, like: SourceInfo | None) -> Source:
    """The source with mean and std of `like`, if given: IDC normalises CIFAR-100 like CIFAR-10."""
    if like is None:
        return source
    mean, std = _of(like, source.name, len(source.mean))
    return replace(source, mean=mean, std=std)


def channel_stats(split: Split) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and std per channel of pixels in 0…1, over at most `SAMPLE` evenly spaced images.

    Integer sums make the result exact and the same on every machine.

    >>> from condense_once.data.source import ArraySplit
    >>> channel_stats(ArraySplit(np.array([[[[0, 255]]]], np.uint8), np.array([0])))
    ((0.5,), (0.5,))
    """
    total = len(split.labels)
    rows = np.arange(min(total, SAMPLE)) * total // min(total, SAMPLE)
    channels, height, width = split.shape
    sums, squares = np.zeros(channels, np.uint64), np.zeros(channels, np.uint64)
    step = max(1, CHUNK_BYTES // (channels * height * width))
    for start in range(0, len(rows), step):
        pixels = split.take(rows[start : start + step]).astype(np.uint32)
        sums += pixels.sum(axis=(0, 2, 3), dtype=np.uint64)
        squares += np.square(pixels).sum(axis=(0, 2, 3), dtype=np.uint64)
    count = len(rows) * height * width
    mean = [int(one) / count / 255 for one in sums]
    variance = [(int(two) * count - int(one) ** 2) / count**2 / 255**2 for one, two in zip(sums, squares, strict=True)]
    # A constant channel has std 0; dividing by 1 leaves it at zero.
    return tuple(mean), tuple(value**0.5 or 1.0 for value in variance)


def read_json(data: bytes, where: str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{where} is not valid JSON ({short_line(error)}); download or create it again.") from error


def class_names(value: object, where: str) -> tuple[str, ...]:
    """`value` as class names, validated; `where` names its file in errors."""
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise BadFile(f"The class names in {where} must be a list of strings.")
    return tuple(value)


def _of(like: SourceInfo, name: str, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if len(like.mean) != channels:
        raise BadOption(
            f"{like.name} has {len(like.mean)} channel{'s'[: len(like.mean) - 1]} but {name} has {channels};"
            " choose another `like`."
        )
    return like.mean, like.std


def _numbers(name: str, splits: Mapping[SplitName, Split]) -> tuple[str, ...]:
    present = np.unique(np.concatenate([split.labels for split in splits.values()]))
    if not np.array_equal(present, np.arange(len(present))):
        raise BadFile(
            f"The labels of {name} must be integers from 0 without gaps, not {present[:3].tolist()}…{present[-1:].tolist()};"
            " renumber them or store class names."
        )
    return tuple(str(label) for label in present)
