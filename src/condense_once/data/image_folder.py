"""Image folders: one sub-folder per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from condense_once.data.catalogue import known_order
from condense_once.data.encoded import (
    EXTENSIONS,
    DecodeSplits,
    EncodedSplit,
    ImageFiles,
    as_needed,
    check_size_options,
    common_size,
)
from condense_once.data.metadata import make_source
from condense_once.data.source import Source, SourceInfo, SplitName
from condense_once.data.wnids import class_words
from condense_once.errors import BadFile


def is_image_folder(folder: Path) -> bool:
    """Whether a folder has sub-folders with images, with or without a level of splits in between."""
    return any(_files(sub) for parent in (folder, *_folders(folder)) for sub in _folders(parent))


def load_image_folder(
    root: Path,
    *,
    size: int | None = None,
    channels: int | None = None,
    like: SourceInfo | None = None,
    decode: DecodeSplits = as_needed,
) -> Source:
    """The source in `root/{train,test or val}/<class>/*` or, without a test split, in `root/<class>/*`.

    Classes and files are sorted by name, but the classes of a known dataset keep its order; ImageNet's ids become words
    where they are known. Images are resized to `size` on the shorter side and centre-cropped, as IDC does; without `size`
    they must all have the same size. `decode` may decode the splits in advance.
    """
    check_size_options(size, channels)
    found = {name: {sub.name: _files(sub) for sub in _folders(place)} for name, place in _splits(root).items()}
    classes = known_order(_common_classes(root, found))
    images = {name: ImageFiles(tuple(file for one in classes for file in files[one])) for name, files in found.items()}
    height, width = (size, size) if size else common_size(root, images)
    shape = (channels or (like.shape[0] if like else 3), height, width)
    splits: dict[SplitName, EncodedSplit] = {}
    for name, files in found.items():
        labels = np.repeat(np.arange(len(classes)), [len(files[one]) for one in classes])
        splits[name] = EncodedSplit(images[name], labels, shape, size)
    return make_source(root.resolve().name, decode(splits), classes=class_words(classes), like=like)


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
