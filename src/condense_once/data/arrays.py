"""Sources as arrays: an `.npz` file, or the folder of `.npy` files that downloads are stored as."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from condense_once.data.metadata import class_names, make_source, normalised_like, read_json
from condense_once.data.npy import as_labels, map_npy, open_npz
from condense_once.data.source import SPLITS, ArraySplit, Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile
from condense_once.files import atomic_folder, existing_file

CHUNK = 256  # images in memory at a time
T = TypeVar("T", bound=np.generic)

# Common names of images and labels: Keras, MedMNIST, and files with a single split.
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
    split; an array of strings under `classes` names the classes. Other keys are ignored.
    """
    splits: dict[SplitName, Split] = {}
    with open_npz(path) as arrays:
        held = ", ".join(arrays) or "nothing"
        for split, images, labels in _KEYS:
            present = [key for key in (images, labels) if key in arrays]
            if not present:
                continue
            if len(present) == 1 or split in splits:
                raise BadFile(f"{path} needs one pair of images and labels per split, but it holds {held}.")
            pictures = _as_uint8(arrays[images](), f"{images} in {path}")
            splits[split] = ArraySplit(pictures, as_labels(arrays[labels](), f"{labels} in {path}"))
        classes = class_names(arrays["classes"]().tolist(), f"classes in {path}") if "classes" in arrays else None
    if not splits:
        raise BadFile(f"{path} holds {held}, but no x_train and y_train; rename its arrays.")
    return make_source(path.stem, splits, classes=classes, like=like)


def channels_first(images: NDArray[T], where: str) -> NDArray[T]:
    """Images as `[n, ch, h, w]`, from channels first or last; a shape that could be either is refused.

    >>> channels_first(np.zeros((9, 32, 24, 3)), "mine.npy").shape
    (9, 3, 32, 24)
    """
    if images.ndim != 4:
        raise BadFile(f"{where} must be [n, channels, height, width], not {list(images.shape)}.")
    first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
    if first == last:
        what = "is ambiguous, channels first or last" if first else "has neither 1 nor 3 channels"
        raise BadFile(f"{where} {what}: it is {list(images.shape)}, not [n, 1 or 3 channels, height, width].")
    return images if first else np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _as_uint8(images: NDArray[Any], where: str) -> NDArray[np.uint8]:
    """8-bit images as `[n, ch, h, w]`, from any unambiguous layout."""
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
        manifest = {
            "name": source.name,
            "classes": source.classes,
            "mean": source.mean,
            "std": source.std,
            "splits": list(source.splits),
        }
        manifest["sha256"] = _digest(part, manifest)
        (part / "source.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def load_arrays(folder: Path, like: SourceInfo | None = None) -> Source:
    """A source that `save_arrays` wrote, memory-mapped.

    Opening has to be fast: only the structure is checked here; `check_arrays` checks the content.
    """
    path = existing_file(folder / "source.json")
    match read_json(path.read_bytes(), str(path)):
        case {"name": str() as name, "classes": names, "mean": mean, "std": std, "splits": list() as parts}:
            classes = class_names(names, str(path))
        case _:
            raise BadFile(f"{path} lacks one of name, classes, mean, std and splits; download the source again.")
    splits: dict[SplitName, Split] = {}
    for part in SPLITS:
        if part in parts:
            images, labels = folder / f"{part}-images.npy", folder / f"{part}-labels.npy"
            splits[part] = ArraySplit(map_npy(images), as_labels(map_npy(labels), str(labels)))
    return normalised_like(Source(name, classes, _numbers(mean, path), _numbers(std, path), splits), like)


def check_arrays(folder: Path) -> None:
    """Check that a folder holds exactly what `save_arrays` wrote; reads every byte."""
    load_arrays(folder)  # reports what is missing or malformed
    path = folder / "source.json"
    manifest = read_json(path.read_bytes(), str(path))
    if not isinstance(manifest, dict) or manifest.pop("sha256", None) != _digest(folder, manifest):
        raise BadFile(f"{folder} has changed since it was saved; download the source again.")


def _digest(folder: Path, manifest: Mapping[str, Any]) -> str:
    """SHA-256 of the manifest in canonical form and of the files it lists."""
    digest = sha256(json.dumps(manifest, sort_keys=True).encode())
    for name in SPLITS:
        for what in ("images", "labels"):
            if name in manifest["splits"]:
                with (folder / f"{name}-{what}.npy").open("rb") as file:
                    while data := file.read(1 << 20):
                        digest.update(data)
    return digest.hexdigest()


def _numbers(value: object, path: Path) -> tuple[float, ...]:
    if not isinstance(value, list) or not all(isinstance(one, int | float) and abs(one) < 1e6 for one in value):
        raise BadFile(f"{path} has a mean or std that is not a list of numbers; download the source again.")
    return tuple(float(one) for one in value)
