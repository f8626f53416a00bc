"""ImageNet's training transforms against plain one-image-at-a-time versions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from tests.conftest import seeded
from torch import Tensor
from torch.nn.functional import interpolate

from condense_once.augment import ImageNetAugmentation
from condense_once.augment.imagenet import jittered, resized_crop

MANY = 4000


def images(n: int, h: int, w: int) -> Tensor:
    return torch.rand(n, 3, h, w, generator=seeded(4), dtype=torch.float64)


def naive_jitter(image: np.ndarray, factors: list[float], order: list[int]) -> np.ndarray:
    """Follow fb.resnet.torch's jitter on one image `[3, h, w]`; nothing is clipped."""

    def gray(image: np.ndarray) -> np.ndarray:
        return 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2]

    def blend(image: np.ndarray, other: np.ndarray | float, factor: float) -> np.ndarray:
        return factor * image + (1.0 - factor) * other

    for kind in order:
        if kind == 0:  # brightness
            image = image * factors[0]
        elif kind == 1:  # contrast
            image = blend(image, float(gray(image).mean()), factors[1])
        else:  # saturation
            image = blend(image, np.stack([gray(image)] * 3), factors[2])
    return image


def test_jitter_equals_one_op_after_another() -> None:
    orders = torch.tensor([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    factors = 0.6 + 0.8 * torch.rand(6, 3, generator=seeded(), dtype=torch.float64)
    x = images(6, 5, 7)
    out = jittered(x, factors, orders)
    for i in range(6):
        expected = naive_jitter(x[i].numpy(), factors[i].tolist(), orders[i].tolist())
        np.testing.assert_allclose(out[i].numpy(), expected, rtol=0, atol=1e-12)


def test_jitter_with_factors_of_one_is_the_identity() -> None:
    x = images(2, 5, 7)
    out = jittered(x, torch.ones(2, 3, dtype=x.dtype), torch.tensor([[0, 1, 2], [2, 1, 0]]))
    torch.testing.assert_close(out, x, rtol=0, atol=1e-15)


def test_resized_crops_equal_interpolate_of_the_slice() -> None:
    x = images(5, 20, 24)
    crops = [(0, 0, 20, 24), (3, 4, 10, 12), (19, 23, 1, 1), (5, 0, 15, 7), (0, 12, 16, 12)]
    out = resized_crop(x, torch.tensor(crops), (16, 16))
    for i, (top, left, h, w) in enumerate(crops):
        piece = x[i : i + 1, :, top : top + h, left : left + w]
        expected = interpolate(piece, (16, 16), mode="bilinear", align_corners=False)
        torch.testing.assert_close(out[i : i + 1], expected, rtol=0, atol=1e-5)


def test_the_whole_image_at_its_own_size_is_unchanged() -> None:
    x = images(2, 16, 16)
    torch.testing.assert_close(resized_crop(x, torch.tensor([[0, 0, 16, 16]] * 2), (16, 16)), x, rtol=0, atol=1e-5)


def test_crops_have_the_area_and_aspect_asked_for() -> None:
    crop = ImageNetAugmentation().sample(MANY, (224, 224), seeded()).crop
    top, left, height, width = crop.double().unbind(1)
    area, aspect = height * width / 224**2, width / height
    assert area.min() > 0.49
    assert area.max() <= 1
    assert aspect.min() > 0.74
    assert aspect.max() < 1.35
    assert abs((aspect.log() > 0).double().mean() - 0.5) < 0.04  # as often wide as high
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + height <= 224).all()
    assert (left + width <= 224).all()
    smaller = (height < 224) & (width < 224)
    for start, length in ((top, height), (left, width)):
        assert (start[smaller] == 0).any()
        assert (start + length == 224)[smaller].any()


def test_a_crop_that_never_fits_is_the_middle_of_the_image() -> None:
    wide = ImageNetAugmentation(area=(1.0, 1.0)).sample(3, (30, 90), seeded()).crop
    assert wide.tolist() == [[0, 25, 30, 40]] * 3
    high = ImageNetAugmentation(area=(1.0, 1.0)).sample(3, (90, 30), seeded()).crop
    assert high.tolist() == [[25, 0, 40, 30]] * 3
    square = ImageNetAugmentation(area=(1.0, 1.0), aspect=(1.3, 1.31)).sample(3, (224, 224), seeded())
    assert square.crop[0].tolist() == [26, 0, 172, 224]


def test_factors_and_orders_are_uniform() -> None:
    params = ImageNetAugmentation().sample(MANY, (224, 224), seeded())
    assert params.factors.min() == pytest.approx(0.6, abs=2e-3)
    assert params.factors.max() == pytest.approx(1.4, abs=2e-3)
    assert params.factors.mean(0).tolist() == pytest.approx([1.0] * 3, abs=0.02)
    counts = Counter(map(tuple, params.order.tolist()))
    assert len(counts) == 6
    assert all(550 < count < 790 for count in counts.values())
    assert abs(params.flip.float().mean() - 0.5) < 0.04


def test_lighting_has_the_covariance_of_imagenet_colours() -> None:
    shift = ImageNetAugmentation().sample(10 * MANY, (8, 8), seeded()).shift.double().numpy()
    vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    values = np.array([0.2175, 0.0188, 0.0045])
    expected = 0.1**2 * vectors @ np.diag(values**2) @ vectors.T
    np.testing.assert_allclose(np.cov(shift.T), expected, rtol=0, atol=0.03 * expected.max())


def test_everything_happens_in_order() -> None:
    augmentation, x = ImageNetAugmentation(size=(12, 12)), images(6, 16, 20)
    params = augmentation.sample(6, (16, 20), seeded())
    out = augmentation.apply(x, params)
    assert out.shape == (6, 3, 12, 12)
    for i in range(6):
        piece = resized_crop(x[i : i + 1], params.crop[i : i + 1], (12, 12))[0].numpy()
        piece = piece[:, :, ::-1] if params.flip[i] else piece
        expected = naive_jitter(piece, params.factors[i].tolist(), params.order[i].tolist())
        expected = expected + params.shift[i].numpy()[:, None, None]
        np.testing.assert_allclose(out[i].numpy(), expected, rtol=0, atol=1e-6)


def test_draws_come_from_the_generator_alone() -> None:
    before = torch.get_rng_state()
    first, again, other = (ImageNetAugmentation().sample(8, (224, 224), seeded(s)) for s in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_gradients_flow_to_the_pixels() -> None:
    augmentation = ImageNetAugmentation(size=(4, 4), jitter=0.05)
    params = augmentation.sample(2, (6, 6), seeded())
    x = (0.3 + 0.4 * images(2, 6, 6)).requires_grad_()  # away from the kinks of the clamp
    assert torch.autograd.gradcheck(lambda x: augmentation.apply(x, params), x, fast_mode=True)
