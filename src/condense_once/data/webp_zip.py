"""Sources as a zip of lossless WebP files, a tenth of the size of a tar.

`train_000.webp`, `train_001.webp`, … and `test_000.webp`, … each hold images stacked vertically; `train_labels.npy`,
`test_labels.npy` and `classes.json` complete the source. Either split may be absent.
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

from condense_once.data.image_io import decode, to_array
from condense_once.data.limits import check_memory
from condense_once.data.metadata import class_names, make_source, read_json
from condense_once.data.npy import as_labels, read_npy
from condense_once.data.safe_zip import open_zip, read_member
from condense_once.data.source import SPLITS, ArraySplit, Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile, BadOption
from condense_once.files import atomic_file

_STACK = re.compile(r"(train|test)_(\d{3,9})\.(webp|png)")
_OTHERS = ("train_labels.npy", "test_labels.npy", "classes.json")
MAX_HEIGHT = 16_000  # pixels of a stack; WebP ends at 16,383
MAX_WIDTH = 4096  # a stack of MAX_HEIGHT × MAX_WIDTH stays below the pixels that are decoded
_MAX_MEMBER = 1 << 28  # bytes


def is_webp_zip(names: list[str]) -> bool:
    """Whether a zip with these members is in this format."""
    return any(_STACK.fullmatch(name) for name in names)


def load_webp_zip(path: Path, like: SourceInfo | None = None) -> Source:
    """The source in such a zip, all of it in memory."""
    splits: dict[SplitName, Split] = {}
    with open_zip(path) as archive:
        names = archive.namelist()
        if odd := [name for name in names if not _STACK.fullmatch(name) and name not in _OTHERS]:
            raise BadFile(
                f"{path} holds {odd[0]!a}, which does not belong in a zip of stacked images; create it again."
            )
        if large := [member.filename for member in archive.infolist() if member.file_size > _MAX_MEMBER]:
            raise BadFile(f"{large[0]} in {path} is larger than {_MAX_MEMBER} bytes; refused.")
        if "classes.json" not in names:
            raise BadFile(f"{path} lacks classes.json with the class names.")
        where = f"classes.json in {path}"
        classes = class_names(read_json(read_member(archive, "classes.json"), where), where)
        for split in SPLITS:
            members = sorted((name for name in names if name.startswith(f"{split}_")), key=_number)
            if members:
                splits[split] = _split(archive, split, [name for name in members if _STACK.fullmatch(name)], path)
    return make_source(path.stem, splits, classes=classes, like=like)


def save_webp_zip(source: Source, path: Path, *, force: bool = False) -> None:
    """Write a source of square images; the same source gives the same bytes."""
    channels, height, width = next(iter(source.splits.values())).shape
    if height != width or width > MAX_WIDTH:
        raise BadOption(f"Stacked images must be square, at most {MAX_WIDTH} pixels per side, not {width}×{height}.")
    with atomic_file(path, force=force) as file, zipfile.ZipFile(file, "w") as archive:
        for name, split in source.splits.items():
            step = MAX_HEIGHT // width
            for number, start in enumerate(range(0, len(split.labels), step)):
                content = _encode(split.take(slice(start, start + step)))
                _add(archive, f"{name}_{number:03d}.{'png' if channels == 1 else 'webp'}", content)
            labels = BytesIO()
            np.save(labels, split.labels.astype(np.min_scalar_type(len(source.classes))), allow_pickle=False)
            _add(archive, f"{name}_labels.npy", labels.getvalue())
        _add(archive, "classes.json", json.dumps(source.classes).encode())


def _split(archive: zipfile.ZipFile, split: SplitName, stacks: list[str], path: Path) -> ArraySplit:
    name = f"{split}_labels.npy"
    if name not in archive.namelist() or not stacks:
        raise BadFile(f"{path} lacks the {'labels' if stacks else 'images'} of its {split} split.")
    check_memory(archive.getinfo(name).file_size, path.stat().st_size, f"{name} in {path}")
    with archive.open(name) as stream:
        labels = as_labels(read_npy(stream, archive.getinfo(name).file_size, f"{name} in {path}"), f"{name} in {path}")
    images = np.empty((0, 0, 0, 0), np.uint8)
    filled = 0
    for stack in stacks:
        part = _images(read_member(archive, stack), f"{stack} in {path}")
        if not filled:  # a few kilobytes can hold very many blank images
            check_memory(len(labels) * part[0].size, path.stat().st_size, f"The {split} split of {path}")
            images = np.empty((len(labels), *part.shape[1:]), np.uint8)
        if filled + len(part) > len(labels):
            raise BadFile(f"{path} has more images than labels in its {split} split; create it again.")
        if part.shape[1:] != images.shape[1:]:
            raise BadFile(f"The images of the {split} split of {path} differ in width or channels; create it again.")
        images[filled : filled + len(part)] = part
        filled += len(part)
    return ArraySplit(images[:filled], labels)


def _images(data: bytes, where: str) -> NDArray[np.uint8]:
    """The images `[k, ch, w, w]` of a stack."""
    image = decode(data, where)
    if image.mode not in ("L", "RGB") or image.height % image.width:
        raise BadFile(
            f"{where} must be 8-bit grey or RGB, its height a multiple of its width, not {image.mode}"
            f" {image.width}×{image.height}; create it again."
        )
    array = to_array(image)  # [ch, k·w, w]
    return array.reshape(len(array), -1, image.width, image.width).swapaxes(0, 1)


def _encode(images: NDArray[np.uint8]) -> bytes:
    count, channels, side, _ = images.shape
    tall = images.transpose(0, 2, 3, 1).reshape(count * side, side, channels)
    out = BytesIO()
    if channels == 1:
        Image.fromarray(tall[..., 0]).save(out, "PNG", optimize=True)  # WebP has no grey mode
    else:
        Image.fromarray(tall).save(out, "WEBP", lossless=True, method=6, quality=100, exact=True)
    if not np.array_equal(_images(out.getvalue(), "The encoded stack"), images):
        raise BadFile("The image encoder of this Pillow is not lossless; install another version.")
    return out.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), content)  # without a timestamp


def _number(name: str) -> int:
    match = _STACK.fullmatch(name)
    return int(match[2]) if match else -1
