from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from condense_once.condensed.mosaic import cut, upsample
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.decode import decode, decode_bounded, factors_within
from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.loop import decoded_patches
from condense_once.data.source import Source


@pytest.mark.parametrize(("side", "factor"), [(8, 1), (8, 2), (32, 2), (11, 3), (28, 3)])
def test_decoding_agrees_with_the_reference(side: int, factor: int, rng: np.random.Generator) -> None:
    mosaics = rng.random((3, 2, side, side)).astype(np.float32)
    fill = np.float32([0.5, -1.0])
    expected = upsample(cut(mosaics, factor, fill).reshape(-1, 2, -(-side // factor), -(-side // factor)), (side, side))
    made = decode(torch.from_numpy(mosaics), factor, torch.from_numpy(fill))
    assert made.shape == expected.shape
    assert np.abs(made.numpy() - expected).max() < 1e-6


def test_every_pixel_of_a_mosaic_is_reached_by_the_gradient_of_its_patches() -> None:
    mosaics = torch.zeros(2, 1, 7, 7, requires_grad=True)
    decode(mosaics, 3, torch.tensor([0.5])).sum().backward()
    assert mosaics.grad is not None
    assert (mosaics.grad > 0).all()


def test_bounded_decoding_gives_the_first_images_the_full_factor() -> None:
    assert factors_within(20, 3, 128) == [(3, 12), (2, 3), (1, 5)]
    assert factors_within(10, 3, 128) == [(3, 10)]
    assert factors_within(50, 3, 128) == [(3, 8), (2, 3), (1, 39)]
    mosaics, fill = torch.rand(6, 1, 6, 6, generator=torch.Generator().manual_seed(0)), torch.tensor([0.5])
    made = decode_bounded(mosaics, 2, fill, bound=14)
    assert factors_within(6, 2, 14) == [(2, 2), (1, 4)]
    assert torch.equal(made, torch.cat([decode(mosaics[:2], 2, fill), mosaics[2:]]))
    assert len(made) == 12


def test_as_many_patches_are_counted_as_are_decoded(source: Source) -> None:
    config, recipe = CondenseConfig.for_source(source, method="dc", ipc=6, factor=2), idc((3, 8, 8), 6, 2)
    assert decoded_patches(config, replace(recipe, max_patches=14)) == config.patches_per_class == 24
    assert decoded_patches(config, replace(recipe, max_patches=14, decode="bound")) == 12


def test_more_images_than_the_bound_are_passed_as_they_are() -> None:
    assert factors_within(200, 3, 128) == [(1, 200)]
