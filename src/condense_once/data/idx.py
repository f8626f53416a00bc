"""MNIST-style datasets as published: idx files, gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condense_once.data.limits import check_memory
from condense_once.data.metadata import make_source
from condense_once.data.safe_zip import MAX_DEFLATE_RATIO
from condense_once.data.source import ArraySplit, Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile, CondenseOnceError
from condense_once.files import existing_file
from condense_once.text import short_line

_PREFIX: dict[SplitName, str] = {"train": "train", "test": "t10k"}


def is_idx(folder: Path) -> bool:
    """Whether a folder holds idx files with the names of MNIST."""
    return any(_find(folder, prefix, what) for prefix in _PREFIX.values() for what in ("images", "labels"))


def load_idx(folder: Path, like: SourceInfo | None = None) -> Source:
    """The source in `{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]`; either split may be absent.

    The files hold no class names; pass `like` for the names and the normalisation of a known dataset.
    """
    splits: dict[SplitName, Split] = {}
    for name, prefix in _PREFIX.items():
        images, labels = _find(folder, prefix, "images"), _find(folder, prefix, "labels")
        if images is None and labels is None:
            continue
        if images is None or labels is None:
            missing = "images" if images is None else "labels"
            raise BadFile(f"{folder} lacks the {missing} of its {name} split, {_names(prefix, missing)[0]}.")
        splits[name] = ArraySplit(_read(images, 3)[:, None], _read(labels, 1).astype(np.int64))
    if not splits:
        raise BadFile(f"{folder} holds no idx files such as {_names('train', 'images')[0]}.")
    return make_source(folder.resolve().name, splits, like=like)


def _names(prefix: str, what: str) -> list[str]:
    kind = "idx3" if what == "images" else "idx1"
    # Some extractors replace the dash by a dot.
    return [f"{prefix}-{what}{mark}{kind}-ubyte{packed}" for packed in ("", ".gz") for mark in "-."]


def _find(folder: Path, prefix: str, what: str) -> Path | None:
    return next((folder / name for name in _names(prefix, what) if (folder / name).is_file()), None)


def _read(path: Path, dimensions: int) -> NDArray[np.uint8]:
    existing_file(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            start = file.read(4 + 4 * dimensions)
            magic, *shape = struct.unpack(f">I{dimensions}I", start)
            if magic != 0x800 + dimensions:  # 8: unsigned bytes
                raise BadFile(f"{path} is not an idx file of bytes in {dimensions} dimensions; download it again.")
            size, stored = math.prod(shape), path.stat().st_size
            possible = size <= stored * (MAX_DEFLATE_RATIO if path.suffix == ".gz" else 1)
            if possible:
                check_memory(size, stored, str(path))
            content = file.read(size + 1) if possible else b""
    except CondenseOnceError:
        raise
    except (struct.error, zlib.error, EOFError, OSError) as error:
        raise BadFile(f"{path} is damaged ({short_line(error)}); download it again.") from error
    if len(content) != size:
        raise BadFile(
            f"{path} has {'more' if len(content) > size else 'fewer'} bytes than its header states; download it again."
        )
    if not size:
        raise BadFile(f"{path} is empty.")
    return np.frombuffer(content, np.uint8).reshape(shape)
