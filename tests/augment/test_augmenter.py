from __future__ import annotations

import pytest
import torch

from condense_once.augment import Augmentation, ImageNetAugmentation, make_augmenter
from condense_once.condensed.space import Space
from condense_once.train.seeds import generator

SPACE = Space("pixels", (0.5,) * 3, (0.25,) * 3)


def test_imagenet_transforms_are_made_on_pixels() -> None:
    mean, std = torch.tensor(0.5), torch.tensor(0.25)
    augmenter, pixels = make_augmenter("imagenet", SPACE, (8, 8)), ImageNetAugmentation((8, 8))
    x = torch.randn(20, 3, 8, 8, generator=generator(0, "x"))
    drawn = augmenter.sample(20, (8, 8), generator(0, "b"))
    torch.testing.assert_close(augmenter.apply(x, drawn), (pixels.apply(x * std + mean, drawn) - mean) / std)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 12)])
def test_imagenet_transforms_keep_grey_and_oblong_images_as_they_are(shape: tuple[int, int, int]) -> None:
    space = Space("pixels", (0.5,) * shape[0], (0.25,) * shape[0])
    augmenter = make_augmenter("imagenet", space, shape[1:])
    x = torch.randn(4, *shape)
    assert augmenter.apply(x, augmenter.sample(4, shape[1:], generator(0, "b"))).shape == x.shape


def test_any_other_name_is_a_strategy() -> None:
    assert make_augmenter("color_crop", SPACE, (8, 8)) == Augmentation.parse("color_crop")
