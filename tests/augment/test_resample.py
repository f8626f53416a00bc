"""The resampler against torch's own, which is slower to differentiate but long trusted."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate

from condense_once.augment.resample import bilinear, resample

SIZES = [(8, 8), (32, 32), (7, 12), (2, 3)]


def images(n: int, h: int, w: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, 3, h, w, generator=torch.Generator().manual_seed(1), dtype=dtype)


def matrices(n: int, reach: float, dtype: torch.dtype = torch.float64) -> Tensor:
    noise = torch.randn(n, 2, 3, generator=torch.Generator().manual_seed(2), dtype=dtype)
    return torch.eye(2, 3, dtype=dtype) + noise * torch.tensor([0.3, 0.3, reach], dtype=dtype)


def by_grid_sample(x: Tensor, matrix: Tensor) -> Tensor:
    h, w = x.shape[-2:]
    theta = matrix.clone()
    theta[:, 0, 1] *= h / w
    theta[:, 1, 0] *= w / h
    theta[:, 0, 2] *= 2 / w
    theta[:, 1, 2] *= 2 / h
    grid = affine_grid(theta, list(x.shape), align_corners=False)
    return grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


@pytest.mark.parametrize(("h", "w"), SIZES)
@pytest.mark.parametrize("reach", [0.0, 1.0, 20.0])
def test_equals_grid_sample(h: int, w: int, reach: float) -> None:
    x, matrix = images(16, h, w), matrices(16, reach)
    torch.testing.assert_close(resample(x, matrix), by_grid_sample(x, matrix), rtol=0, atol=1e-12)


def test_equals_grid_sample_in_single_precision() -> None:
    x, matrix = images(64, 32, 32, torch.float32).clamp(0, 1), matrices(64, 2.0, torch.float32)
    torch.testing.assert_close(resample(x, matrix), by_grid_sample(x, matrix), rtol=0, atol=1e-5)


def test_gradient_equals_that_of_grid_sample() -> None:
    weight, matrix = images(4, 9, 9), matrices(4, 1.0)
    ours, theirs = (
        torch.autograd.grad((f(x, matrix) * weight).sum(), x)[0]
        for f, x in ((f, images(4, 9, 9).requires_grad_()) for f in (resample, by_grid_sample))
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_whole_pixel_shifts_are_exact_at_any_size() -> None:
    for side in (5, 32, 75, 224):
        x = torch.rand(1, 1, side, side, generator=torch.Generator().manual_seed(0))
        moved = resample(x, torch.tensor([[[1.0, 0.0, 2.0], [0.0, 1.0, -3.0]]]))
        expected = torch.zeros_like(x)
        expected[..., 3:, :-2] = x[..., :-3, 2:]
        assert torch.equal(moved, expected)


def test_the_identity_changes_no_bit() -> None:
    x = images(3, 7, 12, torch.float32)
    assert torch.equal(resample(x, torch.eye(2, 3).expand(3, 2, 3)), x)


def test_everything_far_outside_is_zero() -> None:
    far = torch.tensor([[[1.0, 0.0, 100.0], [0.0, 1.0, 0.0]]])
    assert resample(images(2, 8, 8), far).abs().max() == 0


def test_one_matrix_serves_the_whole_batch() -> None:
    x, matrix = images(5, 8, 8), matrices(1, 1.0)
    assert torch.equal(resample(x, matrix), resample(x, matrix.expand(5, 2, 3)))


def test_positions_of_a_resize_equal_interpolate() -> None:
    x = images(2, 6, 5)
    rows = ((torch.arange(9, dtype=torch.float64) + 0.5) * 6 / 9 - 0.5).view(1, 9, 1)
    columns = ((torch.arange(11, dtype=torch.float64) + 0.5) * 5 / 11 - 0.5).view(1, 1, 11)
    expected = interpolate(x, (9, 11), mode="bilinear", align_corners=False)
    torch.testing.assert_close(bilinear(x, rows, columns), expected, rtol=0, atol=1e-12)
