from __future__ import annotations

import numpy as np
import pytest

from condense_once.data.catalogue import CIFAR10, IMAGENET10, MNIST, recognise
from condense_once.data.metadata import SAMPLE, channel_stats, make_source
from condense_once.data.source import SOURCES, ArraySplit, Source, SourceInfo
from condense_once.errors import BadFile, BadOption


def split(count: int = 4, channels: int = 3) -> ArraySplit:
    rng = np.random.default_rng(count)
    return ArraySplit(rng.integers(0, 256, (count, channels, 4, 4), dtype=np.uint8), np.arange(count) % 2)


def test_measuring_agrees_with_numpy() -> None:
    one = split(1000)
    mean, std = channel_stats(one)
    assert mean == pytest.approx((one.images / 255).mean((0, 2, 3)))
    assert std == pytest.approx((one.images / 255).std((0, 2, 3)))


def test_measuring_takes_evenly_spaced_images() -> None:
    count = 3 * SAMPLE
    rare = np.zeros((count, 1, 1, 1), np.uint8)
    rare[::3] = 255
    assert channel_stats(ArraySplit(rare, np.zeros(count, int))) == ((1.0,), (1.0,))


def test_a_constant_channel_is_divided_by_one() -> None:
    assert channel_stats(ArraySplit(np.full((2, 1, 2, 2), 51, np.uint8), np.zeros(2, int))) == ((0.2,), (1.0,))


def test_the_train_split_is_measured_and_the_test_split_for_want_of_one() -> None:
    train, test = split(4), split(6)
    assert make_source("a", {"train": train, "test": test}).mean == channel_stats(train)[0]
    assert make_source("a", {"test": test}).mean == channel_stats(test)[0]


def test_like_goes_before_what_is_known_goes_before_what_is_measured() -> None:
    names = tuple(reversed(CIFAR10.classes))
    assert make_source("a", {"train": split()}, classes=names, like=IMAGENET10).mean == IMAGENET10.mean
    assert make_source("a", {"train": split()}, classes=names).mean == CIFAR10.mean
    assert make_source("a", {"train": split()}, classes=("a", "b")).mean == channel_stats(split())[0]
    with pytest.raises(BadOption, match="mnist has 1 channel but a has 3"):
        make_source("a", {"train": split()}, like=MNIST)


def test_numbers_are_nobodys_names() -> None:
    assert recognise(MNIST.classes, 1) is None
    assert recognise(CIFAR10.classes, 1) is None


@pytest.mark.parametrize("info", list(SOURCES), ids=lambda info: info.name)
def test_what_is_known_of_a_dataset_fits_together(info: SourceInfo) -> None:
    assert len(set(info.classes)) == len(info.classes)
    assert len(info.mean) == len(info.std) == info.shape[0]
    assert all(0 < value < 1 for value in info.mean + info.std)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"splits": {}}, "needs a train or a test split"),
        (
            {"splits": {"train": split(), "test": ArraySplit(np.zeros((1, 3, 5, 5), np.uint8), np.zeros(1, int))}},
            "of one shape",
        ),
        ({"splits": {"train": split(0)}}, "has no images"),
        ({"classes": ("a",)}, "only 1 class names"),
        ({"classes": ("a", "\n")}, "is not printable"),
        ({"mean": (0.5,)}, "need a mean and a positive std"),
        ({"std": (0.5, 0.5, 0.0)}, "need a mean and a positive std"),
        ({"std": (0.5, 0.5, float("inf"))}, "need a mean and a positive std"),
    ],
    ids=range(8),
)
def test_a_source_that_contradicts_itself_is_refused(changes: dict[str, object], complaint: str) -> None:
    whole = {"name": "it", "classes": ("a", "b"), "mean": (0.5,) * 3, "std": (0.5,) * 3, "splits": {"train": split()}}
    Source(**whole)  # type: ignore[arg-type]
    with pytest.raises(BadFile, match=complaint):
        Source(**whole | changes)  # type: ignore[arg-type]
