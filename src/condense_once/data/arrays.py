"""Sources as arrays: one `.npz` of somebody's, or a folder of `.npy` files, which is how downloads are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from condense_once.data.metadata import class_names, describe, normalised_like, read_json
from condense_once.data.npy import as_labels, map_npy, open_npz
from condense_once.data.source import SPLITS, ArraySplit, Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile
from condense_once.files import atomic_folder, existing_file

CHUNK = 256  # images in memory at a time
T = TypeVar("T", bound=np.generic)

# How people call images and labels: Keras, MedMNIST, and whoever has a single split.
_KEYS: tuple[tuple[SplitName, str, str], ...] = (
    ("train", "x_train", "y_train"),
    ("test", "x_test", "y_test"),
    ("train", "train_images", "train_labels"),
    ("test", "test_images", "test_labels"),
    ("train", "images", "labels"),
)


def load_npz(path: Path, like: SourceInfo | None = None) -> Source:
    """The source in an `.npz`: uint8 images, channels first or last or none, with labels for each split.

    Keys are `x_train, y_train, x_test, y_test`, or `train_images, train_labels, …`, or `images, labels` for a single
    split; an array of strings under `classes` names the classes. Others are not looked at.
    """
    splits: dict[SplitName, Split] = {}
    with open_npz(path) as arrays:
        held = ", ".join(arrays) or "nothing"
        for split, images, labels in _KEYS:
            present = [key for key in (images, labels) if key in arrays]
            if not present:
                continue
            if len(present) == 1 or split in splits:
                raise BadFile(f"{path} needs one pair of images and labels a split, but it holds {held}.")
            pictures = _eight_bits(arrays[images](), f"{images} in {path}")
            splits[split] = ArraySplit(pictures, as_labels(arrays[labels](), f"{labels} in {path}"))
        classes = class_names(arrays["classes"]().tolist(), f"classes in {path}") if "classes" in arrays else None
    if not splits:
        raise BadFile(f"{path} holds {held}, but no x_train and y_train; name its arrays so.")
    return describe(path.stem, splits, classes=classes, like=like)


def channels_first(images: NDArray[T], where: str) -> NDArray[T]:
    """`[n, ch, h, w]` of images of 1 or 3 channels that may have them last; where both would do, nobody can know.

    >>> channels_first(np.zeros((9, 32, 24, 3)), "mine.npy").shape
    (9, 3, 32, 24)
    """
    if images.ndim != 4:
        raise BadFile(f"{where} must be [n, channels, height, width], not {list(images.shape)}.")
    first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
    if first == last:
        what = "could have its channels first or last" if first else "has neither 1 nor 3 channels"
        raise BadFile(f"{where} {what}: it is {list(images.shape)}, not [n, 1 or 3 channels, height, width].")
    return images if first else np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _eight_bits(images: NDArray[Any], where: str) -> NDArray[np.uint8]:
    """`[n, ch, h, w]` of what is sure to be pixels, stored in any clear layout."""
    if images.dtype.kind == "f":
        raise BadFile(
            f"{where} has {images.dtype} pixels; store 0…255 as uint8, such as (x * 255).round().astype('uint8')."
        )
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
        raise BadFile(
            f"{where} must be uint8 [n, h, w], [n, h, w, ch] or [n, ch, h, w], not {images.dtype} {images.shape}."
        )
    return images[:, None] if images.ndim == 3 else channels_first(images, where)


def is_arrays(folder: Path) -> bool:
    """Whether a folder was written by `save_arrays`."""
    return (folder / "source.json").is_file()


def save_arrays(source: Source, folder: Path) -> None:
    """Write a source as `{train,test}-{images,labels}.npy` and `source.json` into a new folder."""
    with atomic_folder(folder) as part:
        for name, split in source.splits.items():
            count = len(split.labels)
            out = np.lib.format.open_memmap(part / f"{name}-images.npy", "w+", np.uint8, (count, *split.shape))
            for start in range(0, count, CHUNK):
                out[start : start + CHUNK] = split.take(slice(start, start + CHUNK))
            out.flush()
            np.save(part / f"{name}-labels.npy", split.labels, allow_pickle=False)
        note = {
            "name": source.name,
            "classes": source.classes,
            "mean": source.mean,
            "std": source.std,
            "splits": list(source.splits),
        }
        note["sha256"] = _digest(part, note)
        (part / "source.json").write_text(json.dumps(note, indent=1), encoding="utf-8")


def load_arrays(folder: Path, like: SourceInfo | None = None) -> Source:
    """The source that `save_arrays` wrote; its images stay on disk until they are taken.

    Opening must take no time, so that only the form of the files is checked here, and their content by `check_arrays`.
    """
    path = existing_file(folder / "source.json")
    match read_json(path.read_bytes(), str(path)):
        case {"name": str() as name, "classes": names, "mean": mean, "std": std, "splits": list() as parts}:
            classes = class_names(names, str(path))
        case _:
            raise BadFile(f"{path} does not say name, classes, mean, std and splits; get the source again.")
    splits: dict[SplitName, Split] = {}
    for part in SPLITS:
        if part in parts:
            images, labels = folder / f"{part}-images.npy", folder / f"{part}-labels.npy"
            splits[part] = ArraySplit(map_npy(images), as_labels(map_npy(labels), str(labels)))
    return normalised_like(Source(name, classes, _numbers(mean, path), _numbers(std, path), splits), like)


def check_arrays(folder: Path) -> None:
    """Make sure that a folder holds, to the last bit, what `save_arrays` put there; every byte is read."""
    load_arrays(folder)  # names what is missing, cut off or out of place
    path = folder / "source.json"
    note = read_json(path.read_bytes(), str(path))
    if not isinstance(note, dict) or note.pop("sha256", None) != _digest(folder, note):
        raise BadFile(f"{folder} has changed since it was saved; get the source again.")


def _digest(folder: Path, note: Mapping[str, Any]) -> str:
    """SHA-256 of the note, written in one certain way, and of the bytes of the files that it speaks of."""
    digest = sha256(json.dumps(note, sort_keys=True).encode())
    for name in SPLITS:
        for what in ("images", "labels"):
            if name in note["splits"]:
                with (folder / f"{name}-{what}.npy").open("rb") as file:
                    while data := file.read(1 << 20):
                        digest.update(data)
    return digest.hexdigest()


def _numbers(value: object, path: Path) -> tuple[float, ...]:
    if not isinstance(value, list) or not all(isinstance(one, int | float) and abs(one) < 1e6 for one in value):
        raise BadFile(f"{path} has a mean or a deviation that is not a list of numbers; get the source again.")
    return tuple(float(one) for one in value)
