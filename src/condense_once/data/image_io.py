"""Single image files: decoded whole or not at all, as 8-bit colour or grey."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from condense_once.errors import BadFile

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
MOST_PIXELS = 1 << 26  # 64 megapixels; a few bytes of PNG can claim far more

_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N", "F")  # Pillow would clip these to 255
# What Pillow's decoders raise on damage: they parse what they are given and mostly trust it.
_DAMAGE = (
    *(OSError, EOFError, SyntaxError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError),
    *(struct.error, zlib.error, Image.DecompressionBombError, Image.DecompressionBombWarning),
)


def picture_size(path: Path) -> tuple[int, int]:
    """(height, width), from the header alone."""
    with _damage_named(str(path)), Image.open(path, formats=FORMATS) as image:
        return image.height, image.width


def decode(data: bytes, where: str) -> Image.Image:
    """The picture in `data`, as it was stored; `where` names it in errors."""
    with _damage_named(where):
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise BadFile(f"{where} has {image.width}×{image.height} pixels, more than the {MOST_PIXELS} allowed.")
            if image.mode in _DEEP:
                raise BadFile(f"{where} has more than 8 bits a pixel; save it with 8.")
            if image.format == "PNG":
                image.verify()  # decoding alone would not compare checksums; it leaves the image unusable
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            image.load()
            return image


def coloured(image: Image.Image, channels: int) -> Image.Image:
    """The picture in 8-bit RGB or grey, whatever it was stored in; transparency is dropped, as torchvision does."""
    if image.mode == "P":
        image = image.convert("RGBA")  # from a palette with transparency straight to RGB, Pillow warns
    colour = image.convert("RGB")
    return colour if channels == 3 else colour.convert("L")


def pixels(image: Image.Image) -> NDArray[np.uint8]:
    """`[channels, height, width]` of a picture in 8-bit RGB or grey."""
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


@contextmanager
def _damage_named(where: str) -> Iterator[None]:
    try:
        yield
    except UnidentifiedImageError as error:
        raise BadFile(f"{where} is none of {', '.join(FORMATS)}; replace or remove it.") from error
    except _DAMAGE as error:
        raise BadFile(f"{where} cannot be decoded as an image ({error}); replace or remove it.") from error
