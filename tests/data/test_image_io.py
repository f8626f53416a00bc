from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from condense_once.data import image_io
from condense_once.data.image_io import decode
from condense_once.errors import BadFile


def png(mode: str, side: int = 8) -> bytes:
    out = io.BytesIO()
    Image.new(mode, (side, side)).save(out, "PNG")
    return out.getvalue()


def declaring(raw: bytes, width: int, height: int) -> bytes:
    """The same PNG with another size in its header, and a valid checksum."""
    header = b"IHDR" + struct.pack(">II", width, height) + raw[24:29]
    return raw[:12] + header + struct.pack(">I", zlib.crc32(header)) + raw[33:]


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "L"])
def test_a_picture_that_declares_more_than_its_data_can_hold_is_refused_before_it_is_decoded(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = declaring(png(mode), 8000, 8000)
    monkeypatch.setattr(PngImageFile, "load", lambda _: pytest.fail("it was decoded"))
    with pytest.raises(BadFile, match="it declares more pixels than its data can hold"):
        decode(forged, "it")


@pytest.mark.parametrize("mode", ["RGB", "1", "L", "P"])
def test_a_picture_of_one_colour_compresses_as_far_as_it_may(mode: str) -> None:
    assert decode(png(mode, 2000), "it").size == (2000, 2000)


def test_what_a_decoder_says_is_quoted_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("x\n" * 5000)

    monkeypatch.setattr(image_io.Image, "open", fail)
    with pytest.raises(BadFile, match="cannot be decoded") as caught:
        decode(b"", "it")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_deep_pictures_are_refused() -> None:
    out = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint16)).save(out, "PNG")
    with pytest.raises(BadFile, match="more than 8 bits"):
        decode(out.getvalue(), "it")
