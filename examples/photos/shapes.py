"""Pictures of three shapes in random colours and sizes: a folder of photos that anyone can make."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIDE = 32
CORNERS = {"square": 4, "triangle": 3, "circle": 0}  # of each class


def draw_shape(shape: str, rng: np.random.Generator) -> Image.Image:
    """One picture of a shape on a noisy background.

    >>> draw_shape("square", np.random.default_rng(0)).size
    (32, 32)
    """
    background = rng.integers(0, 100) + rng.integers(0, 60, (SIDE, SIDE, 3))
    picture = Image.fromarray(background.astype(np.uint8))
    radius, colour = int(rng.integers(9, 13)), tuple(rng.integers(120, 256, 3).tolist())
    x, y = (int(place) for place in rng.integers(13, 20, 2))
    pen = ImageDraw.Draw(picture)
    if CORNERS[shape]:
        pen.regular_polygon((x, y, radius), CORNERS[shape], rotation=int(rng.integers(-20, 21)), fill=colour)
    else:
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    return picture


def write_folder(folder: Path, *, train: int = 60, test: int = 30, seed: int = 0) -> Path:
    """`folder/train/<class>/<n>.png` and the same of `test`: the usual layout of an image folder."""
    rng = np.random.default_rng(seed)
    for split, count in (("train", train), ("test", test)):
        for shape in CORNERS:
            place = folder / split / shape
            place.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                draw_shape(shape, rng).save(place / f"{number:03}.png")
    return folder
