"""Every op against plain Python loops; draws against the constants of DSA."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.conftest import seeded
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from condense_once.augment.ops import (
    Brightness,
    Color,
    Contrast,
    Crop,
    Cutout,
    Flip,
    Rotate,
    Saturation,
    Scale,
    identity_matrix,
)

OPS: list[Any] = [Flip(), Brightness(), Saturation(), Contrast(), Color(), Crop(), Scale(), Rotate(), Cutout()]
each_op = pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__.lower())

MANY = 20_000


def images(n: int, h: int, w: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, 3, h, w, generator=seeded(9), dtype=dtype)


# Naive oracles: nested lists in, one pixel at a time.

Pixel = Callable[[list[Any], Any, int, int, int], float]


def mirrored(x: list[Any], p: Any, c: int, i: int, j: int) -> float:
    return x[c][i][len(x[c][i]) - 1 - j] if p else x[c][i][j]


def brightened(x: list[Any], p: Any, c: int, i: int, j: int) -> float:
    return x[c][i][j] + p


def saturated(x: list[Any], p: Any, c: int, i: int, j: int) -> float:
    mean = sum(channel[i][j] for channel in x) / len(x)
    return mean + p * (x[c][i][j] - mean)


def contrasted(x: list[Any], p: Any, c: int, i: int, j: int) -> float:
    values = [v for channel in x for row in channel for v in row]
    mean = sum(values) / len(values)
    return mean + p * (x[c][i][j] - mean)


def shifted(x: list[Any], p: Any, c: int, i: int, j: int) -> float:
    row, column = i + round(p[1][2]), j + round(p[0][2])
    return x[c][row][column] if 0 <= row < len(x[c]) and 0 <= column < len(x[c][0]) else 0.0


def holed(x: list[Any], p: Any, c: int, i: int, j: int) -> float:
    return 0.0 if i in range(p[0], p[1]) and j in range(p[2], p[3]) else x[c][i][j]


@pytest.mark.parametrize(
    ("op", "pixel"),
    [
        (Flip(), mirrored),
        (Brightness(), brightened),
        (Saturation(), saturated),
        (Contrast(), contrasted),
        (Crop(0.3), shifted),
        (Cutout(), holed),
    ],
    ids=lambda value: type(value).__name__.lower(),
)
def test_equals_a_loop_over_pixels(op: Any, pixel: Pixel) -> None:
    n, h, w = 6, 7, 10
    x = images(n, h, w)
    params = op.sample(n, (h, w), seeded())
    expected = [
        [[[pixel(image, p, c, i, j) for j in range(w)] for i in range(h)] for c in range(3)]
        for image, p in zip(x.tolist(), params.tolist(), strict=True)
    ]
    torch.testing.assert_close(op.apply(x, params), torch.tensor(expected, dtype=x.dtype), rtol=0, atol=1e-12)


def test_color_is_brightness_then_saturation_then_contrast() -> None:
    x = images(4, 6, 6)
    params = Color().sample(4, (6, 6), seeded())
    step = Brightness.apply(x, params[:, 0])
    step = Saturation.apply(step, params[:, 1])
    assert torch.equal(Color.apply(x, params), Contrast.apply(step, params[:, 2]))


@pytest.mark.parametrize("size", [(32, 32), (9, 14)])
def test_scale_equals_grid_sample(size: tuple[int, int]) -> None:
    x = images(8, *size)
    params = Scale().sample(8, size, seeded())
    theta = torch.zeros(8, 2, 3, dtype=torch.float64)
    theta[:, 0, 0], theta[:, 1, 1] = params[:, 0, 0], params[:, 1, 1]
    expected = grid_sample(x, affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)
    torch.testing.assert_close(Scale.apply(x, params), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [(32, 32), (9, 14)])
def test_rotate_equals_grid_sample(size: tuple[int, int]) -> None:
    x = images(8, *size).clamp(0, 1)
    params = Rotate().sample(8, size, seeded())
    cos, sin = params[:, 0, 0], params[:, 1, 0] * size[1] / size[0]
    theta = torch.stack([torch.stack([cos, -sin, 0 * cos], 1), torch.stack([sin, cos, 0 * cos], 1)], 1).double()
    expected = grid_sample(x, affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)
    torch.testing.assert_close(Rotate.apply(x, params), expected, rtol=0, atol=1e-5)


# Draws.


def assert_uniform(values: Tensor, low: float, high: float) -> None:
    """Check ends, mean and variance of many draws, the last two within about five standard errors."""
    width = high - low
    assert low <= values.min() <= low + width / 1000
    assert high - width / 1000 <= values.max() <= high
    assert abs(values.mean() - (low + high) / 2) < 5 * width / math.sqrt(12 * MANY)
    assert abs(values.var() - width**2 / 12) < 0.02 * width**2 / 12 * 5


def test_flip_is_a_fair_coin() -> None:
    assert abs(Flip().sample(MANY, (32, 32), seeded()).float().mean() - 0.5) < 0.02


def test_color_strengths_are_those_of_dsa() -> None:
    brightness, saturation, contrast = Color().sample(MANY, (32, 32), seeded()).unbind(1)
    assert_uniform(brightness, -0.5, 0.5)
    assert_uniform(saturation, 0.0, 2.0)
    assert_uniform(contrast, 0.5, 1.5)
    assert abs(torch.corrcoef(torch.stack([brightness, saturation, contrast])).tril(-1)).max() < 0.04


@pytest.mark.parametrize(("side", "reach"), [(32, 4), (224, 28), (28, 4), (20, 3)])
def test_crop_reaches_an_eighth_of_the_side(side: int, reach: int) -> None:
    params = Crop().sample(MANY, (side, 2 * side), seeded())
    right, down = params[:, 0, 2], params[:, 1, 2]
    assert torch.equal(down.unique(), torch.arange(-reach, reach + 1.0))
    assert right.max() == int(0.125 * 2 * side + 0.5) == -right.min()
    share = (down == reach).float().mean() * (2 * reach + 1)
    assert 0.85 < share < 1.15
    assert torch.equal(params[:, :, :2], torch.eye(2).expand(MANY, 2, 2))


def test_scale_is_within_a_fifth_and_independent_per_axis() -> None:
    params = Scale().sample(MANY, (32, 32), seeded())
    assert_uniform(params[:, 0, 0], 1 / 1.2, 1.2)
    assert_uniform(params[:, 1, 1], 1 / 1.2, 1.2)
    assert abs(torch.corrcoef(torch.stack([params[:, 0, 0], params[:, 1, 1]]))[0, 1]) < 0.04


def test_scale_above_one_shrinks() -> None:
    x = torch.ones(1, 1, 32, 32)
    shrunk = Scale.apply(x, torch.tensor([[[1.2, 0.0, 0.0], [0.0, 1.2, 0.0]]]))
    assert shrunk[0, 0, 0, 0] == 0
    assert shrunk[0, 0, 16, 16] == 1


def test_rotate_is_within_fifteen_degrees() -> None:
    params = Rotate().sample(MANY, (32, 32), seeded())
    assert_uniform(torch.atan2(params[:, 1, 0], params[:, 0, 0]) * 180 / math.pi, -15, 15)
    assert torch.equal(params[:, 0, 1], -params[:, 1, 0])


@pytest.mark.parametrize(("side", "cut"), [(32, 16), (224, 112), (9, 5), (10, 5), (2, 1)])
def test_cutout_is_half_the_side_with_its_centre_anywhere(side: int, cut: int) -> None:
    boxes = Cutout().sample(MANY, (side, side), seeded())
    assert torch.equal(boxes[:, 1] - boxes[:, 0], torch.full((MANY,), cut))
    assert torch.equal(boxes[:, 3] - boxes[:, 2], torch.full((MANY,), cut))
    centres = boxes[:, 0] + cut // 2
    assert torch.equal(centres.unique(), torch.arange(side + 1 - cut % 2))


def test_cutout_clamps_like_dsa_at_the_border() -> None:
    side, cut = 8, 4
    for centre in range(side + 1):
        rows = {min(max(centre - cut // 2 + i, 0), side - 1) for i in range(cut)}  # DSA clamps indices one by one
        start = centre - cut // 2
        out = Cutout.apply(torch.ones(1, 1, side, side), torch.tensor([[start, start + cut, 0, side]]))
        assert {i for i in range(side) if out[0, 0, i].sum() == 0} == rows


# What holds for all ops.


@each_op
def test_a_draw_depends_on_the_generator_alone(op: Any) -> None:
    before = torch.get_rng_state()
    first, again, other = (op.sample(16, (32, 32), seeded(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@each_op
def test_draws_differ_from_image_to_image(op: Any) -> None:
    params = op.sample(16, (32, 32), seeded())
    assert len(params) == 16
    assert len(params.unique(dim=0)) > 1


@each_op
def test_a_single_draw_treats_all_images_alike(op: Any) -> None:
    x = images(5, 8, 8)
    params = op.sample(1, (8, 8), seeded(1))
    alone = torch.cat([op.apply(image, params) for image in x.split(1)])
    torch.testing.assert_close(op.apply(x, params), alone, rtol=0, atol=1e-14)


@each_op
def test_does_not_change_its_input(op: Any) -> None:
    x = images(5, 8, 8)
    op.apply(x, op.sample(5, (8, 8), seeded()))
    assert torch.equal(x, images(5, 8, 8))


@each_op
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_keeps_shape_and_precision(op: Any, dtype: torch.dtype) -> None:
    x = images(5, 8, 11, dtype)
    out = op.apply(x, op.sample(5, (8, 11), seeded()))
    assert out.shape == x.shape
    assert out.dtype == dtype


@each_op
def test_single_channel_images_work(op: Any) -> None:
    x = images(4, 28, 28)[:, :1]
    assert op.apply(x, op.sample(4, (28, 28), seeded())).shape == x.shape


@each_op
@pytest.mark.parametrize("n", [1, 2])
def test_first_and_second_derivatives(op: Any, n: int) -> None:
    params = op.sample(n, (4, 5), seeded(2))
    x = images(2, 4, 5).requires_grad_()

    def bent(x: Tensor) -> Tensor:
        return op.apply(x, params).pow(2)  # the ops are linear: without the square there is no second derivative

    assert torch.autograd.gradcheck(bent, x, fast_mode=True)
    assert torch.autograd.gradgradcheck(bent, x, fast_mode=True)


@each_op
def test_composes_with_torch_func(op: Any) -> None:
    x = images(3, 4, 5)
    params = op.sample(1, (4, 5), seeded(2))

    def loss(image: Tensor) -> Tensor:
        return op.apply(image.unsqueeze(0), params).pow(3).sum()

    batched = torch.func.vmap(torch.func.grad(loss))(x)
    one_by_one = torch.stack([torch.func.grad(loss)(image) for image in x])
    torch.testing.assert_close(batched, one_by_one, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("apply", "identity"),
    [
        (Flip.apply, Flip.identity),
        (Color.apply, Color.identity),
        (Crop.apply, identity_matrix),
        (Cutout.apply, Cutout.identity),
    ],
)
def test_identity_parameters_change_nothing(apply: Callable[..., Tensor], identity: Callable[..., Tensor]) -> None:
    x = images(3, 8, 8)
    torch.testing.assert_close(apply(x, identity(3, x.device)), x, rtol=0, atol=1e-14)
