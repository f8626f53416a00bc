"""Folders of photographs, one folder per class, decoded when they are asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.catalogue import known_order
from condense_once.data.image_io import coloured, decode, picture_size, pixels
from condense_once.data.metadata import describe
from condense_once.data.source import Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile, BadOption

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
LARGEST_SIZE = 4096


@dataclass(frozen=True)
class TreeSplit:
    """A split whose images are files."""

    files: tuple[Path, ...]
    labels: NDArray[np.int64]
    shape: tuple[int, int, int]
    size: int | None  # to resize and crop to; None: they all have the right size

    @property
    def listing(self) -> list[tuple[str, str, int]]:
        """Folder, name and bytes of every file, which hardly stay the same when images are exchanged."""
        return [(file.parent.name, file.name, file.stat().st_size) for file in self.files]

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
        chosen = [self.files[row] for row in np.arange(len(self.files))[rows]]
        images = np.empty((len(chosen), *self.shape), np.uint8)
        with ThreadPoolExecutor() as pool:  # Pillow decodes outside the interpreter's lock
            for place, image in enumerate(pool.map(self._decode, chosen)):
                images[place] = image
        return images

    def _decode(self, path: Path) -> NDArray[np.uint8]:
        # As torchvision and IDC do, a note of EXIF on how the camera was held is not followed: ImageNet's numbers are
        # all of images as they are stored.
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadFile(f"{path} cannot be read: {error.strerror}.") from error
        image = coloured(decode(data, str(path)), self.shape[0])
        values = pixels(image if self.size is None else resized_crop(image, self.size))
        if values.shape != self.shape:
            raise BadFile(f"{path} has changed its size to {values.shape[2]}×{values.shape[1]}; open the folder again.")
        return values


def is_tree(folder: Path) -> bool:
    """Whether a folder has sub-folders with images, with or without the level of splits between."""
    return any(_files(sub) for parent in (folder, *_folders(folder)) for sub in _folders(parent))


def load_tree(
    root: Path, *, size: int | None = None, channels: int | None = None, like: SourceInfo | None = None
) -> Source:
    """The source in `root/{train,test or val}/<class>/*` or, without a test split, in `root/<class>/*`.

    Classes and files are in the order of their names, but the classes of a known dataset in its own. Images are resized
    to `size` on their shorter side and cropped to the square in the middle, as IDC does; without `size` they must be of
    one size already, and stay as they are.
    """
    if size is not None and not 1 <= size <= LARGEST_SIZE:
        raise BadOption(f"--size must be 1…{LARGEST_SIZE}, not {size}.")
    if channels not in (None, 1, 3):
        raise BadOption(f"--channels must be 1 or 3, not {channels}.")
    found = {name: {sub.name: _files(sub) for sub in _folders(place)} for name, place in _splits(root).items()}
    classes = known_order(_common_classes(root, found))
    height, width = (size, size) if size else _common_size(root, found)
    shape = (channels or (like.shape[0] if like else 3), height, width)
    splits: dict[SplitName, Split] = {}
    for name, files in found.items():
        labels = np.repeat(np.arange(len(classes)), [len(files[one]) for one in classes])
        splits[name] = TreeSplit(tuple(file for one in classes for file in files[one]), labels, shape, size)
    return describe(root.resolve().name, splits, classes=classes, like=like)


def resized_crop(image: Image.Image, size: int) -> Image.Image:
    """Resize(size) and CenterCrop(size) of torchvision, pixel for pixel."""
    width, height = image.size
    short = min(width, height)
    if short != size:
        width, height = int(size * width / short), int(size * height / short)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return image.crop((left, top, left + size, top + size))


def _splits(root: Path) -> dict[SplitName, Path]:
    """Folders of splits. Where there are both, `test` is the test split: `val` was for choosing settings."""
    found: dict[SplitName, Path] = {}
    candidates: tuple[tuple[SplitName, str], ...] = (("train", "train"), ("test", "val"), ("test", "test"))
    for name, folder in candidates:
        if (root / folder).is_dir() and _folders(root / folder):
            found[name] = root / folder
    return found or {"train": root}


def _folders(path: Path) -> list[Path]:
    return sorted(sub for sub in path.iterdir() if sub.is_dir() and not sub.name.startswith("."))


def _files(path: Path) -> list[Path]:
    images = (file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith("."))
    return sorted(file for file in images if file.is_file())


def _common_classes(root: Path, found: dict[SplitName, dict[str, list[Path]]]) -> tuple[str, ...]:
    for name, classes in found.items():
        if not classes:
            raise BadFile(f"{root} holds no folders of images.")
        if empty := [one for one, files in classes.items() if not files]:
            raise BadFile(f"The class folder {empty[0]} in {root} ({name}) holds no images; fill or remove it.")
    first, *others = found.values()
    for other in others:
        if odd := sorted(set(first) ^ set(other)):
            raise BadFile(f"Train and test in {root} must have the same classes, but only one of them has {odd[0]}.")
    return tuple(first)


def _common_size(root: Path, found: dict[SplitName, dict[str, list[Path]]]) -> tuple[int, int]:
    sizes: dict[tuple[int, int], Path] = {}
    for file in (file for classes in found.values() for files in classes.values() for file in files):
        sizes.setdefault(picture_size(file), file)
        if len(sizes) > 1:
            (one, two) = (f"{file} is {width}×{height}" for (height, width), file in sizes.items())
            raise BadOption(f"The images in {root} have no common size ({one}, {two}); pass --size.")
    return next(iter(sizes))
