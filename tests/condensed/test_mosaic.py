from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from condense_once.condensed.mosaic import cell_size, cut, encode, join, patch_sources, upsample
from condense_once.errors import BadOption


def decode_one_class(images: torch.Tensor, factor: int) -> torch.Tensor:
    """IDC's decoding written down step by step, for one class."""
    side = images.shape[-1]
    if side % factor:
        extra = factor - side % factor
        images = torch.nn.functional.pad(images, (0, extra, 0, extra), value=0.5)
    step = images.shape[-1] // factor
    corners = [(i * step, j * step) for i in range(factor) for j in range(factor)]
    crops = [images[:, :, top : top + step, left : left + step] for top, left in corners]
    return torch.nn.functional.interpolate(torch.cat(crops), size=side, mode="bilinear", align_corners=False)


@pytest.mark.parametrize(("side", "factor"), [(32, 2), (32, 1), (224, 3), (28, 3), (9, 4)])
def test_decoding_equals_the_step_by_step_way(rng: np.random.Generator, side: int, factor: int) -> None:
    mosaics = rng.random((2, 3, side, side), dtype=np.float32)
    expected = decode_one_class(torch.from_numpy(mosaics), factor).numpy()
    cells = cut(mosaics, factor)
    decoded = upsample(cells.reshape(-1, *cells.shape[2:]), (side, side))
    np.testing.assert_allclose(decoded, expected, atol=1e-6)


@pytest.mark.parametrize(("side", "factor", "cell"), [(32, 2, 16), (224, 3, 75), (224, 2, 112), (28, 3, 10)])
def test_cells_have_the_published_sizes(side: int, factor: int, cell: int) -> None:
    assert cell_size((side, side), factor) == (cell, cell)


def test_the_padded_line_of_224_by_3_is_mid_grey() -> None:
    cells = cut(np.zeros((1, 1, 224, 224), np.float32), 3)
    assert (cells[8, 0, 0, 74] == 0.5).all()
    assert (cells[8, 0, 0, :, 74] == 0.5).all()
    assert (cells[0] == 0).all()


@pytest.mark.parametrize(("side", "factor"), [(32, 2), (224, 3), (10, 3), (7, 1)])
def test_cutting_and_joining_loses_nothing(rng: np.random.Generator, side: int, factor: int) -> None:
    mosaics = rng.integers(0, 256, (3, 1, side, side), dtype=np.uint8)
    np.testing.assert_array_equal(join(cut(mosaics, factor, 128), factor, (side, side)), mosaics)


def test_the_golden_patch_number() -> None:
    """In a set of ten images per class, that of class 3, the cell below the first, and the last image but two."""
    images, cells = patch_sources(np.repeat(np.arange(5), 10), factor=2)
    assert (images[147], cells[147]) == (37, 2)


@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=12), factor=st.integers(1, 4))
def test_patches_are_numbered_by_class_then_cell_then_image_whatever_the_order_of_labels(
    labels: list[int], factor: int
) -> None:
    expected = []
    for label in sorted(set(labels)):
        for cell in range(factor * factor):
            expected += [(image, cell) for image, of in enumerate(labels) if of == label]
    images, cells = patch_sources(np.array(labels), factor)
    assert list(zip(images.tolist(), cells.tolist(), strict=True)) == expected


@pytest.mark.parametrize(("side", "factor"), [(32, 2), (224, 3), (11, 4)])
def test_encoding_equals_pytorch_nearest(rng: np.random.Generator, side: int, factor: int) -> None:
    images = rng.random((2 * factor**2, 3, side, side), dtype=np.float32)
    mosaics = encode(images, factor)
    small, larger = side // factor, side % factor
    widths = [small + 1] * larger + [small] * (factor - larger)
    top = 0
    for i, height in enumerate(widths):
        left = 0
        for j, width in enumerate(widths):
            k = i * factor + j
            shrunk = torch.nn.functional.interpolate(torch.from_numpy(images[2 * k : 2 * k + 2]), size=(height, width))
            np.testing.assert_array_equal(mosaics[:, :, top : top + height, left : left + width], shrunk.numpy())
            left += width
        top += height


def test_constant_images_come_back_as_their_constants() -> None:
    values = np.arange(8, dtype=np.float32)
    images = np.broadcast_to(values[:, None, None, None], (8, 1, 32, 32))
    cells = cut(encode(images, 2), 2)
    decoded = upsample(cells.reshape(-1, 1, 16, 16), (32, 32))
    np.testing.assert_allclose(decoded, images, atol=1e-6)


@pytest.mark.parametrize("factor", [0, -1, 9])
def test_a_factor_that_leaves_no_pixel_is_refused(factor: int) -> None:
    with pytest.raises(BadOption, match="factor"):
        cell_size((8, 8), factor)


def test_images_that_do_not_fill_a_mosaic_are_refused() -> None:
    with pytest.raises(BadOption, match="multiple of 4"):
        encode(np.zeros((5, 3, 8, 8), np.uint8), 2)


def test_a_factor_that_makes_a_small_file_decode_to_gigabytes_is_refused() -> None:
    assert cell_size((4096, 4096), 16) == (256, 256)
    with pytest.raises(BadOption, match="`factor` must be 1 to 16, not 4096"):
        cell_size((4096, 4096), 4096)
