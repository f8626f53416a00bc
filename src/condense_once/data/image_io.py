"""Single image files: decoded completely or not at all, as 8-bit RGB or grey."""

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

from condense_once.data.safe_zip import MAX_DEFLATE_RATIO
from condense_once.errors import BadFile, CondenseOnceError
from condense_once.text import short_line

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
MAX_PIXELS = 1 << 26  # 64 megapixels; a few bytes of PNG can declare far more

_PNG_BYTES = {"LA": 2, "RGB": 3, "RGBA": 4}  # of a pixel, before compression
_DEEP_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N", "F")  # Pillow would clip these to 255
# What Pillow's decoders raise on damaged files.
_DAMAGE = (
    *(OSError, EOFError, SyntaxError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError),
    *(struct.error, zlib.error, Image.DecompressionBombError, Image.DecompressionBombWarning),
)


def image_size(image: Path | bytes, where: str) -> tuple[int, int]:
    """(height, width), from the header alone."""
    with _decode_errors(where):
        opened = Image.open(BytesIO(image) if isinstance(image, bytes) else image, formats=FORMATS)
        with opened:
            return opened.height, opened.width


def decode(data: bytes, where: str) -> Image.Image:
    """The image in `data`, in its stored mode; `where` names it in errors."""
    with _decode_errors(where):
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise BadFile(f"{where} has {image.width}×{image.height} pixels, more than the {MAX_PIXELS} allowed.")
            if image.mode in _DEEP_MODES:
                raise BadFile(f"{where} has more than 8 bits per channel; save it with 8.")
            if image.format == "PNG":
                # One eighth: a picture in grey or with a palette may have one bit per pixel
                declared = image.width * image.height * _PNG_BYTES.get(image.mode, 1 / 8)
                if declared > len(data) * MAX_DEFLATE_RATIO:
                    raise BadFile(f"{where} declares more pixels than its data can hold; replace or remove it.")
                image.verify()  # decoding does not compare checksums; `verify` leaves the image unusable
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            image.load()
            return image


def convert(image: Image.Image, channels: int) -> Image.Image:
    """The image in 8-bit RGB or grey; transparency is dropped, as in torchvision."""
    if image.mode == "P":
        image = image.convert("RGBA")  # Pillow warns if a palette with transparency is converted straight to RGB
    colour = image if image.mode == "RGB" else image.convert("RGB")  # `convert` would copy
    return colour if channels == 3 else colour.convert("L")


def to_array(image: Image.Image) -> NDArray[np.uint8]:
    """`[channels, height, width]` of an image in 8-bit RGB or grey."""
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


@contextmanager
def _decode_errors(where: str) -> Iterator[None]:
    try:
        yield
    except UnidentifiedImageError as error:
        raise BadFile(f"{where} is not one of {', '.join(FORMATS)}; replace or remove it.") from error
    except CondenseOnceError:
        raise
    except _DAMAGE as error:
        raise BadFile(f"{where} cannot be decoded as an image ({short_line(error)}); replace or remove it.") from error
