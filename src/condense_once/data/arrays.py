"""Sources as arrays: an `.npz` file, or the folder of `.npy` files that downloads are stored as."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from condense_once.data.metadata import class_names, make_source, normalised_like, read_json
from condense_once.data.npy import as_labels, map_npy, open_npz
from condense_once.data.source import SPLITS, ArraySplit, Source, SourceInfo, Split, SplitName
from condense_once.errors import BadFile
from condense_once.files import atomic_file, atomic_folder, existing_file
from condense_once.progress import Progress

CHUNK = 256  # images in memory at a time
T = TypeVar("T", bound=np.generic)
ValueRange = Literal["unit"]  # of floats: 0…1

# Common names of images and labels: Keras, MedMNIST, and files with a single split.
_KEYS: tuple[tuple[SplitName, str, str], ...] = (
    ("train", "x_train", "y_train"),
    ("test", "x_test", "y_test"),
    ("train", "train_images", "train_labels"),
    ("test", "test_images", "test_labels"),
    ("train", "images", "labels"),
)


def load_npz(path: Path, like: SourceInfo | None = None, values: ValueRange | None = None) -> Source:
    """The source in an `.npz`: uint8 images, channels first or last or none, with labels for each split.

    Keys are `x_train, y_train, x_test, y_test`, or `train_images, train_labels, …`, or `images, labels` for a single
    split; an array of strings under `classes` names the classes. Other keys are ignored. With `values="unit"`, images of
    floats are pixels in 0…1.
    """
    with open_npz(path) as arrays:
        return _from_arrays(path, arrays, like, values)


def is_npy_folder(folder: Path) -> bool:
    """Whether a folder holds `x_train.npy` and so on."""
    return any((folder / f"{images}.npy").is_file() for _, images, _ in _KEYS)


def load_npy_folder(folder: Path, like: SourceInfo | None = None, values: ValueRange | None = None) -> Source:
    """The source in a folder of `.npy` files with the names that `load_npz` knows, memory-mapped if they are uint8."""
    names = {key for _, *keys in _KEYS for key in keys} | {"classes"}
    present = {name: folder / f"{name}.npy" for name in sorted(names) if (folder / f"{name}.npy").is_file()}
    return _from_arrays(folder, {name: partial(map_npy, path) for name, path in present.items()}, like, values)


def _from_arrays(
    path: Path,
    arrays: Mapping[str, Callable[[], NDArray[Any]]],
    like: SourceInfo | None,
    values: ValueRange | None,
) -> Source:
    splits: dict[SplitName, Split] = {}
    held = ", ".join(arrays) or "nothing"
    for split, images, labels in _KEYS:
        present = [key for key in (images, labels) if key in arrays]
        if not present:
            continue
        if len(present) == 1 or split in splits:
            raise BadFile(f"{path} needs one pair of images and labels per split, but it holds {held}.")
        pictures = _as_uint8(arrays[images](), f"{images} in {path}", values)
        splits[split] = ArraySplit(pictures, as_labels(arrays[labels](), f"{labels} in {path}"))
    classes = class_names(arrays["classes"]().tolist(), f"classes in {path}") if "classes" in arrays else None
    if not splits:
        raise BadFile(f"{path} holds {held}, but no x_train and y_train; rename its arrays.")
    name = path.resolve().name if path.is_dir() else path.stem
    return make_source(name, splits, classes=classes, like=like)


def save_npz(source: Source, path: Path, *, force: bool = False, progress: Progress | None = None) -> None:
    """Write a source as an `.npz` that `load_npz` reads: `x_train, y_train, x_test, y_test, classes`."""
    total, done = sum(len(split.labels) for split in source.splits.values()), 0
    with atomic_file(path, force=force) as file, zipfile.ZipFile(file, "w") as archive:
        for name, split in source.splits.items():
            with archive.open(zipfile.ZipInfo(f"x_{name}.npy"), "w", force_zip64=True) as out:
                header = {"descr": "|u1", "fortran_order": False, "shape": (len(split.labels), *split.shape)}
                npy_format.write_array_header_1_0(out, header)
                for start in range(0, len(split.labels), CHUNK):
                    out.write(np.ascontiguousarray(split.take(slice(start, start + CHUNK))).data)
                    if progress is not None:
                        progress(min(done + start + CHUNK, total), total)
            done += len(split.labels)
            _add_array(archive, f"y_{name}", split.labels)
        _add_array(archive, "classes", np.array(source.classes))


def _add_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as out:
        npy_format.write_array(out, array, allow_pickle=False)


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


def _as_uint8(images: NDArray[Any], where: str, values: ValueRange | None) -> NDArray[np.uint8]:
    """8-bit images as `[n, ch, h, w]`, from any unambiguous layout."""
    if images.dtype.kind == "f" and values == "unit":
        images = _from_unit(images, where)
    elif images.dtype.kind == "f":
        raise BadFile(
            f"{where} has {images.dtype} pixels; if they run from 0 to 1, open it with `values` unit or convert it by"
            " `condense-once data pack`, or else store 0…255 as uint8."
        )
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
        raise BadFile(
            f"{where} must be uint8 [n, h, w], [n, h, w, ch] or [n, ch, h, w], not {images.dtype} {images.shape}."
        )
    return images[:, None] if images.ndim == 3 else channels_first(images, where)


def _from_unit(images: NDArray[Any], where: str) -> NDArray[np.uint8]:
    """8-bit pixels from floats in 0…1, rounded."""
    pixels = np.empty(images.shape, np.uint8)
    for start in range(0, len(images), CHUNK):
        part = np.asarray(images[start : start + CHUNK], np.float32)
        if part.size and not (part.min() >= 0 and part.max() <= 1):  # false for NaN, too
            low, high = float(part.min()), float(part.max())
            raise BadFile(
                f"{where} runs from {low:.4g} to {high:.4g}, not from 0 to 1; leave out `values` and rescale it."
            )
        pixels[start : start + CHUNK] = np.rint(part * 255)
    return pixels


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
    """A source that `save_arrays` wrote, memory-mapped, and compared with its digest once per process."""
    source = _map_arrays(folder)
    files = (folder / "source.json", *sorted(folder.glob("*.npy")))
    _check_once(folder.resolve(), tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in files))
    return normalised_like(source, like)


def _map_arrays(folder: Path) -> Source:
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
    return Source(name, classes, _numbers(mean, path), _numbers(std, path), splits)


@lru_cache(maxsize=64)
def _check_once(folder: Path, _versions: tuple[tuple[int, int], ...]) -> None:
    check_arrays(folder)  # 0.2 s for CIFAR-10


def check_arrays(folder: Path) -> None:
    """Check that a folder holds exactly what `save_arrays` wrote; reads every byte."""
    _map_arrays(folder)  # reports what is missing or malformed
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
