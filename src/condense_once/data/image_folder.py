"""Image folders: one sub-folder per class, decoded on demand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.catalogue import known_order
from condense_once.data.image_io import convert, decode, image_size, to_array
from condense_once.data.metadata import make_source
from condense_once.data.source import Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile, BadOption, InaccessibleFile

EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
MAX_SIZE = 4096


@dataclass(frozen=True)
class ImageFolderSplit:
    """A split whose images are files."""

    files: tuple[Path, ...]
    labels: NDArray[np.int64]
    shape: tuple[int, int, int]
    size: int | None  # to resize and crop to; None if all have the same size

    @property
    def listing(self) -> list[tuple[str, str, int]]:
        """Folder, name and size of every file: a cheap fingerprint of the content."""
        return [(file.parent.name, file.name, file.stat().st_size) for file in self.files]

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
        chosen = [self.files[row] for row in np.arange(len(self.files))[rows]]
        images = np.empty((len(chosen), *self.shape), np.uint8)
        with ThreadPoolExecutor() as pool:  # Pillow releases the GIL while decoding
            for place, image in enumerate(pool.map(self._decode, chosen)):
                images[place] = image
        return images

    def _decode(self, path: Path) -> NDArray[np.uint8]:
        # EXIF orientation is ignored, as in torchvision and IDC: published ImageNet results use images as stored.
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InaccessibleFile(f"{path} cannot be read: {error.strerror}.") from error
        image = convert(decode(data, str(path)), self.shape[0])
        values = to_array(image if self.size is None else resized_crop(image, self.size))
        if values.shape != self.shape:
            raise BadFile(f"{path} now has size {values.shape[2]}×{values.shape[1]}; open the folder again.")
        return values


def is_image_folder(folder: Path) -> bool:
    """Whether a folder has sub-folders with images, with or without a level of splits in between."""
    return any(_files(sub) for parent in (folder, *_folders(folder)) for sub in _folders(parent))


def load_image_folder(
    root: Path, *, size: int | None = None, channels: int | None = None, like: SourceInfo | None = None
) -> Source:
    """The source in `root/{train,test or val}/<class>/*` or, without a test split, in `root/<class>/*`.

    Classes and files are sorted by name, but the classes of a known dataset keep its order. Images are resized to `size`
    on the shorter side and centre-cropped, as IDC does; without `size` they must all have the same size.
    """
    if size is not None and not 1 <= size <= MAX_SIZE:
        raise BadOption(f"`size` must be 1…{MAX_SIZE}, not {size}.")
    if channels not in (None, 1, 3):
        raise BadOption(f"`channels` must be 1 or 3, not {channels}.")
    found = {name: {sub.name: _files(sub) for sub in _folders(place)} for name, place in _splits(root).items()}
    classes = known_order(_common_classes(root, found))
    height, width = (size, size) if size else _common_size(root, found)
    shape = (channels or (like.shape[0] if like else 3), height, width)
    splits: dict[SplitName, Split] = {}
    for name, files in found.items():
        labels = np.repeat(np.arange(len(classes)), [len(files[one]) for one in classes])
        splits[name] = ImageFolderSplit(tuple(file for one in classes for file in files[one]), labels, shape, size)
    return make_source(root.resolve().name, splits, classes=classes, like=like)


def resized_crop(image: Image.Image, size: int) -> Image.Image:
    """Resize(size) and CenterCrop(size) of torchvision, identical to the pixel."""
    width, height = image.size
    short = min(width, height)
    if short != size:
        width, height = int(size * width / short), int(size * height / short)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return image.crop((left, top, left + size, top + size))


def _splits(root: Path) -> dict[SplitName, Path]:
    """Folders of the splits; `test` takes precedence over `val`, which is for tuning."""
    found: dict[SplitName, Path] = {}
    candidates: tuple[tuple[SplitName, str], ...] = (("train", "train"), ("test", "val"), ("test", "test"))
    for name, folder in candidates:
        if (root / folder).is_dir() and _folders(root / folder):
            found[name] = root / folder
    return found or {"train": root}


def _folders(path: Path) -> list[Path]:
    """Sub-folders by name, or by value if all of them are numbers: 2 before 10, as whoever numbered them meant it."""
    found = sorted(sub for sub in path.iterdir() if sub.is_dir() and not sub.name.startswith("."))
    return sorted(found, key=lambda sub: int(sub.name)) if all(sub.name.isdecimal() for sub in found) else found


def _files(path: Path) -> list[Path]:
    images = (file for file in path.iterdir() if file.suffix.lower() in EXTENSIONS and not file.name.startswith("."))
    return sorted(file for file in images if file.is_file())


def _common_classes(root: Path, found: dict[SplitName, dict[str, list[Path]]]) -> tuple[str, ...]:
    for name, classes in found.items():
        if not classes:
            raise BadFile(f"{root} holds no image folders.")
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
        sizes.setdefault(image_size(file), file)
        if len(sizes) > 1:
            (one, two) = (f"{file} is {width}×{height}" for (height, width), file in sizes.items())
            raise BadOption(f"The images in {root} differ in size ({one}, {two}); pass `size`.")
    return next(iter(sizes))
