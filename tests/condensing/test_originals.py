from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condense_once.condensed.mosaic import encode
from condense_once.condensing.originals import original_rows
from condense_once.condensing.runner import condense
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption


@pytest.fixture
def source() -> Source:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([0, 1, 2], 30))
    images = rng.integers(0, 256, (90, 3, 8, 8), dtype=np.uint8)
    return Source("noise", ("ant", "bee", "cat"), (0.5,) * 3, (0.25,) * 3, {"train": ArraySplit(images, labels)})


@pytest.mark.parametrize("init", ["first", "random", "representatives"])
def test_the_images_that_patches_started_from_are_found_again(source: Source, init: str) -> None:
    """Without any step, a patch is its original, shrunk."""
    made = condense(source, method="idc", ipc=2, net="convnet-d1-w4", seed=3, overrides={"iterations": 0, "init": init})
    some = made.take(np.array([20, 3, 11, 7]))
    rows = original_rows(some, source)
    assert np.array_equal(source.train.labels[rows], some.labels)
    for cell, row in zip(some.cells, rows, strict=True):
        alone = encode(np.repeat(source.train.take(np.array([row])), 4, axis=0), 2)  # four times in one mosaic
        assert np.array_equal(cell, alone[0, :, :4, :4])


def test_other_images_and_other_beginnings_have_no_originals(source: Source) -> None:
    fields = {"iterations": 0, "init": "noise"}
    noise = condense(source, method="idc", ipc=1, net="convnet-d1-w4", overrides=fields)
    with pytest.raises(BadOption, match="does not record real images that its patches started from"):
        original_rows(noise, source)
    made = condense(source, method="idc", ipc=1, net="convnet-d1-w4", overrides={"iterations": 0})
    other = replace(source, splits={"train": ArraySplit(source.train.take(slice(None)) // 2, source.train.labels)})
    with pytest.raises(BadOption, match="was not condensed from these images of noise"):
        original_rows(made, other)
