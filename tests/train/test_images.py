from __future__ import annotations

import numpy as np
import pytest
import torch

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import ArraySplit, Source
from condense_once.metrics import Epochs, MetricConfig, ScoringRun, record_scoring_run
from condense_once.train.images import ImageSubset, StreamedImages, TrainingData, training_data

NET = "convnet-d3-w32"


@pytest.fixture
def source(rng: np.random.Generator) -> Source:
    """Images and labels that may not be written to, as of a mapped file."""
    images, labels = rng.integers(0, 256, (230, 3, 8, 8), dtype=np.uint8), rng.integers(0, 3, 230)
    for array in (images, labels):
        array.setflags(write=False)
    return Source(
        "shapes", ("ant", "bee", "cat"), (0.5, 0.4, 0.3), (0.2, 0.25, 0.3), {"train": ArraySplit(images, labels)}
    )


def assert_same_run(one: ScoringRun, other: ScoringRun) -> None:
    assert one.clean_dynamics is not None
    assert other.clean_dynamics is not None
    for mine, theirs in ((one.dynamics, other.dynamics), (one.clean_dynamics, other.clean_dynamics)):
        for name in ("error", "margin", "probability", "correct"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


def record(data: CondensedSet | Source | TrainingData) -> ScoringRun:
    config = MetricConfig(scoring_epochs=2, lbpe_epochs=Epochs.all())
    return record_scoring_run(data, ["lbpe-clean"], config, net=NET)


def test_a_set_is_trained_on_to_the_same_bits_in_memory_and_read_as_needed(pixel_set: CondensedSet) -> None:
    in_memory, streamed = training_data(pixel_set), training_data(pixel_set, memory_limit=0)
    assert isinstance(in_memory.images, torch.Tensor)
    assert isinstance(streamed.images, StreamedImages)
    assert_same_run(record(in_memory), record(streamed))


def test_a_source_is_trained_on_like_the_set_of_all_its_images(source: Source) -> None:
    same = CondensedSet(
        cells=source.train.take(slice(None)),
        labels=source.train.labels,
        classes=source.classes,
        size=(8, 8),
        factor=1,
        space=Space("pixels", source.mean, source.std),
        origin=np.arange(230),
    )
    expected = record(same)
    assert_same_run(record(training_data(source, memory_limit=0)), expected)
    assert_same_run(record(source), expected)


def test_a_source_is_normalised_as_plain_loops_would(source: Source) -> None:
    pixels, data = source.train.take(slice(None)), training_data(source, memory_limit=0)
    assert (len(data), data.shape, data.classes) == (230, (3, 8, 8), 3)
    rows = [200, 3, 3]
    got = data.images[torch.tensor(rows)]
    for k, row in enumerate(rows):
        for channel in range(3):
            plain = (pixels[row, channel].astype(float) / 255 - source.mean[channel]) / source.std[channel]
            np.testing.assert_allclose(got[k, channel], plain, atol=1e-5)


def test_a_subset_is_renumbered() -> None:
    images = torch.arange(10.0).view(10, 1, 1, 1)
    some = ImageSubset(images, torch.tensor([8, 1, 5]))
    assert len(some) == 3
    assert some[torch.tensor([2, 0])].flatten().tolist() == [5, 8]
    assert some[1:].flatten().tolist() == [1, 5]
