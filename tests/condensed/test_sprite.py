from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import condense_once
from condense_once.condensed import sprite
from condense_once.condensed.sprite import PAD, Sprite, draw_sprite, sprite_of


def tile_of(made: Sprite, number: int) -> np.ndarray:
    sheet = np.asarray(Image.open(io.BytesIO(made.content)).convert("RGB"))
    wide, high = made.width + 2 * PAD, made.height + 2 * PAD
    top, left = number // made.columns * high + PAD, number % made.columns * wide + PAD
    return sheet[top : top + made.height, left : left + made.width]


def test_every_tile_is_found_at_its_place() -> None:
    tiles = np.random.default_rng(0).integers(0, 256, (7, 4, 6, 3)).astype(np.uint8)
    made = draw_sprite(tiles)
    assert (made.columns, made.width, made.height) == (3, 6, 4)
    for number, tile in enumerate(tiles):
        np.testing.assert_array_equal(tile_of(made, number), tile)


def test_tiles_are_surrounded_by_their_own_edges() -> None:
    tiles = np.zeros((4, 2, 2, 3), np.uint8)
    tiles[1] = 255
    sheet = np.asarray(Image.open(io.BytesIO(draw_sprite(tiles).content)).convert("RGB"))
    assert sheet[:4, :4].max() == 0
    assert sheet[:4, 4:].min() == 255


def test_the_tiles_of_a_set_are_its_cells() -> None:
    data = condense_once.load("cifar10-idc-ipc10", first=12)
    made = sprite_of(data)
    for number in range(12):
        np.testing.assert_array_equal(tile_of(made, number), data.cells[number].transpose(1, 2, 0))


def test_very_large_and_very_many_tiles_are_smaller() -> None:
    large = np.zeros((1, 1, 200, 100), np.uint8)
    data = condense_once.CondensedSet(
        large, np.zeros(1, int), ("a",), (200, 100), 1, condense_once.Space("pixels", (0.5,), (0.5,)), np.zeros(1, int)
    )
    made = sprite_of(data)
    assert (made.height, made.width) == (96, 48)


def test_without_webp_a_sprite_is_a_png(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sprite.features, "check", lambda _name: False)
    made = draw_sprite(np.zeros((1, 2, 2, 3), np.uint8))
    assert made.kind == "image/png"
    assert made.content.startswith(b"\x89PNG")
    assert made.url.startswith("data:image/png;base64,")
