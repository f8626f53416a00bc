"""Sources as a zip of picture strips: images one below the other, compressed without loss, a tenth of a tar to carry.

`train_000.webp`, `train_001.webp`, … and `test_000.webp`, … are each one image wide and many images tall; with
`train_labels.npy`, `test_labels.npy` and `classes.json` the source is whole. Either split may be absent.
"""

from __future__ import annotations

import json
import re
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.image_io import decode, pixels
from condense_once.data.metadata import class_names, describe, read_json
from condense_once.data.npy import as_labels, read_npy
from condense_once.data.safe_zip import open_zip, read_member
from condense_once.data.source import SPLITS, ArraySplit, Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile, BadOption
from condense_once.files import atomic_file

_STRIP = re.compile(r"(train|test)_(\d{3,9})\.(webp|png)")
_OTHERS = ("train_labels.npy", "test_labels.npy", "classes.json")
TALLEST = 16_000  # pixels of a strip; WebP ends at 16,383
WIDEST = 4096  # so that no strip has more pixels than are read again
_LARGEST = 1 << 28  # bytes of one member


def is_strips(names: list[str]) -> bool:
    """Whether a zip with these members is one of strips."""
    return any(_STRIP.fullmatch(name) for name in names)


def load_strips(path: Path, like: SourceInfo | None = None) -> Source:
    """The source in a zip of strips, all of it in memory."""
    splits: dict[SplitName, Split] = {}
    with open_zip(path) as archive:
        names = archive.namelist()
        if odd := [name for name in names if not _STRIP.fullmatch(name) and name not in _OTHERS]:
            raise BadFile(f"{path} holds {odd[0]!a}, which has no place in a zip of strips; make it again.")
        if large := [member.filename for member in archive.infolist() if member.file_size > _LARGEST]:
            raise BadFile(f"{large[0]} in {path} is larger than {_LARGEST} bytes; not read.")
        if "classes.json" not in names:
            raise BadFile(f"{path} lacks classes.json, the names of its classes.")
        where = f"classes.json in {path}"
        classes = class_names(read_json(read_member(archive, "classes.json"), where), where)
        for split in SPLITS:
            members = sorted((name for name in names if name.startswith(f"{split}_")), key=_number)
            if members:
                splits[split] = _split(archive, split, [name for name in members if _STRIP.fullmatch(name)], path)
    return describe(path.stem, splits, classes=classes, like=like)


def save_strips(source: Source, path: Path, *, force: bool = False) -> None:
    """Write a source of square images as a zip of strips; the same source gives the same bytes."""
    channels, height, width = next(iter(source.splits.values())).shape
    if height != width or width > WIDEST:
        raise BadOption(f"Strips hold square images of at most {WIDEST} pixels a side, not {width}×{height}.")
    with atomic_file(path, force=force) as file, zipfile.ZipFile(file, "w") as archive:
        for name, split in source.splits.items():
            step = TALLEST // width
            for number, start in enumerate(range(0, len(split.labels), step)):
                content = _encode(split.take(slice(start, start + step)))
                _add(archive, f"{name}_{number:03d}.{'png' if channels == 1 else 'webp'}", content)
            labels = BytesIO()
            np.save(labels, split.labels.astype(np.min_scalar_type(len(source.classes))), allow_pickle=False)
            _add(archive, f"{name}_labels.npy", labels.getvalue())
        _add(archive, "classes.json", json.dumps(source.classes).encode())


def _split(archive: zipfile.ZipFile, split: SplitName, strips: list[str], path: Path) -> ArraySplit:
    name = f"{split}_labels.npy"
    if name not in archive.namelist() or not strips:
        raise BadFile(f"{path} lacks the {'labels' if strips else 'images'} of its {split} split.")
    with archive.open(name) as stream:
        labels = as_labels(read_npy(stream, archive.getinfo(name).file_size, f"{name} in {path}"), f"{name} in {path}")
    images: list[NDArray[np.uint8]] = []
    for strip in strips:
        images.append(_images(read_member(archive, strip), f"{strip} in {path}"))
        # Counted as they come: a few kilobytes can hold a very tall strip of nothing.
        if sum(map(len, images)) > len(labels):
            raise BadFile(f"{path} has more images than labels in its {split} split; make it again.")
    if len({one.shape[1:] for one in images}) > 1:
        raise BadFile(f"The strips of the {split} split of {path} differ in width or in colour; make it again.")
    return ArraySplit(np.concatenate(images), labels)


def _images(data: bytes, where: str) -> NDArray[np.uint8]:
    """`[k, ch, w, w]` of a strip."""
    image = decode(data, where)
    if image.mode not in ("L", "RGB") or image.height % image.width:
        raise BadFile(
            f"{where} must be 8-bit grey or RGB and a whole number of squares tall, not {image.mode}"
            f" {image.width}×{image.height}; make it again."
        )
    array = pixels(image)  # [ch, k·w, w]
    return array.reshape(len(array), -1, image.width, image.width).swapaxes(0, 1)


def _encode(images: NDArray[np.uint8]) -> bytes:
    count, channels, side, _ = images.shape
    tall = images.transpose(0, 2, 3, 1).reshape(count * side, side, channels)
    out = BytesIO()
    if channels == 1:
        Image.fromarray(tall[..., 0]).save(out, "PNG", optimize=True)  # WebP knows no grey
    else:
        Image.fromarray(tall).save(out, "WEBP", lossless=True, method=6, quality=100, exact=True)
    if not np.array_equal(_images(out.getvalue(), "The strip just made"), images):
        raise BadFile("Pillow's image encoder on this machine is not lossless; install another Pillow.")
    return out.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), content)  # without a date of today


def _number(name: str) -> int:
    match = _STRIP.fullmatch(name)
    return int(match[2]) if match else -1
