"""Datasets in several files, such as `train-00000-of-00002.parquet`: which split a file belongs to, and numbering classes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condense_once.data.encoded import (
    DecodeSplits,
    EncodedImages,
    EncodedSplit,
    as_needed,
    check_size_options,
    common_size,
)
from condense_once.data.metadata import make_source
from condense_once.data.source import Source, SourceInfo, SplitName
from condense_once.data.wnids import class_words
from condense_once.errors import BadFile

# Words in the names of files and folders, those for tuning last.
_WORDS: tuple[tuple[SplitName, str], ...] = (("train", "train"), ("test", "test"), ("test", "val(id|idation)?"))

Labels = Sequence[int] | Sequence[str]


def find_shards(path: Path, *suffixes: str) -> dict[SplitName, list[Path]]:
    """The files of each split at `path`, a file or a folder with at most two levels; all are train if no name says so.

    A `test` split takes precedence over `val`, which is for tuning.
    """
    if path.is_file():
        return {"train": [path]}
    patterns = [f"{above}*{suffix}" for above in ("", "*/", "*/*/") for suffix in suffixes]
    files = sorted(file for pattern in patterns for file in path.glob(pattern) if file.is_file())
    found: dict[SplitName, list[Path]] = {}
    for split, word in _WORDS:
        mentioned = [file for file in files if _mentions(file.relative_to(path), word)]
        if mentioned and split not in found:
            found[split] = mentioned
    return found or ({"train": files} if files else {})


def make_encoded_source(
    path: Path,
    images: Mapping[SplitName, EncodedImages],
    labels: Mapping[SplitName, Labels],
    *,
    classes: tuple[str, ...] | None,
    size: int | None,
    channels: int | None,
    like: SourceInfo | None,
    decode: DecodeSplits = as_needed,
) -> Source:
    """A source of encoded images with a label each: a number, or a name, which are sorted."""
    check_size_options(size, channels)
    if not images or not all(len(split) for split in images.values()):
        raise BadFile(f"{path} holds no images.")
    numbers, names = _numbered(path, labels, classes)
    height, width = (size, size) if size else common_size(path, images)
    shape = (channels or (like.shape[0] if like else 3), height, width)
    splits = {name: EncodedSplit(images[name], numbers[name], shape, size) for name in images}
    name = path.resolve().name if path.is_dir() else Path(path.name.removesuffix(".gz")).stem
    return make_source(name, decode(splits), classes=None if names is None else class_words(names), like=like)


def _numbered(
    path: Path, labels: Mapping[SplitName, Labels], classes: tuple[str, ...] | None
) -> tuple[dict[SplitName, NDArray[np.int64]], tuple[str, ...] | None]:
    every = [label for split in labels.values() for label in split]
    if all(isinstance(label, str) for label in every):
        names = classes or tuple(sorted({str(label) for label in every}))
        number = {name: at for at, name in enumerate(names)}
        if unknown := {str(label) for label in every} - set(names):
            raise BadFile(f"{path} has images of the class {min(unknown)!a}, which is not among its class names.")
        return {split: np.array([number[str(label)] for label in each]) for split, each in labels.items()}, names
    if not all(type(label) is int and 0 <= label < 1 << 31 for label in every):
        raise BadFile(f"The labels of {path} must be all names or all numbers from 0.")
    return {split: np.array(each, np.int64) for split, each in labels.items()}, classes


def _mentions(path: Path, word: str) -> bool:
    return any(re.search(rf"(^|[-_.]){word}([-_.]|$)", part, re.IGNORECASE) for part in path.parts)
