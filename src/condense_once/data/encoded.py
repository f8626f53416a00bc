"""Splits of encoded images (JPEG, PNG …), wherever they are stored: in a folder, a tar or a parquet file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.image_io import MAX_PIXELS, convert, decode, image_size, to_array
from condense_once.data.source import Split, SplitName
from condense_once.errors import BadFile, BadOption, InaccessibleFile

EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
MAX_SIZE = 4096  # pixels along a side of an image in a source
MAX_FILE = 1 << 28  # bytes of one encoded image; 64 megapixels of BMP are fewer
LARGE = 1 << 23  # pixels: above, one image is decoded at a time, as each takes hundreds of megabytes

_one_large_image = Lock()


class EncodedImages(Protocol):
    """Encoded images by row."""

    def __len__(self) -> int: ...

    @property
    def listing(self) -> list[tuple[str, str, int]]: ...  # folder or archive, name and size of each: a fingerprint

    @property
    def versions(self) -> list[tuple[Any, ...]]: ...  # of the files they are in: path, size, times of change in ns

    def read(self, rows: NDArray[np.int64]) -> Iterator[tuple[str, bytes]]: ...  # where it is stored, and its bytes

    def sizes(self) -> Iterator[tuple[str, tuple[int, int]]]: ...  # where each is stored, with (height, width)


class DecodedImages(Protocol):
    """Images that were decoded before."""

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]: ...


@dataclass(frozen=True)
class EncodedSplit:
    """A split whose images are encoded; they are decoded as needed unless `decoded` has them."""

    images: EncodedImages
    labels: NDArray[np.int64]
    shape: tuple[int, int, int]
    size: int | None  # to resize and crop to; None if all have the same size
    decoded: DecodedImages | None = None

    @property
    def listing(self) -> list[tuple[str, str, int]]:
        return self.images.listing

    def take(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
        if self.decoded is not None:
            return self.decoded.take(rows)
        chosen = np.arange(len(self.images))[rows]
        images = np.empty((len(chosen), *self.shape), np.uint8)
        for place, image in enumerate(self.decode(chosen)):
            images[place] = image
        return images

    def decode(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.uint8]]:
        """The images of these rows, one by one; only a few are in memory at a time."""
        workers = os.cpu_count() or 1
        pending: deque[Future[NDArray[np.uint8]]] = deque()
        with ThreadPoolExecutor(workers) as pool:  # Pillow releases the GIL while decoding
            for where, content in self.images.read(rows):
                pending.append(pool.submit(self._decode, where, content))
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def _decode(self, where: str, content: bytes) -> NDArray[np.uint8]:
        # EXIF orientation is ignored, as in torchvision and IDC: published ImageNet results use images as stored.
        height, width = image_size(content, where)
        if self.size is not None and self.size**2 * max(height, width) > MAX_PIXELS * min(height, width):
            raise BadFile(f"{where} is {width}×{height}, too long and narrow to be resized; replace or remove it.")
        if height * width > LARGE:
            with _one_large_image:
                return self._resized(where, content)
        return self._resized(where, content)

    def _resized(self, where: str, content: bytes) -> NDArray[np.uint8]:
        image = convert(decode(content, where), self.shape[0])
        values = to_array(image if self.size is None else resized_crop(image, self.size))
        if values.shape != self.shape:
            raise BadFile(f"{where} now has size {values.shape[2]}×{values.shape[1]}; open the source again.")
        return values


DecodeSplits = Callable[[Mapping[SplitName, EncodedSplit]], Mapping[SplitName, EncodedSplit]]


def as_needed(splits: Mapping[SplitName, EncodedSplit]) -> Mapping[SplitName, EncodedSplit]:
    """The splits as they are, to be decoded whenever their images are used."""
    return splits


@dataclass(frozen=True)
class ImageFiles:
    """Encoded images in files of their own."""

    files: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.files)

    @property
    def listing(self) -> list[tuple[str, str, int]]:
        return [(file.parent.name, file.name, file.stat().st_size) for file in self.files]

    @property
    def versions(self) -> list[tuple[Any, ...]]:
        return [file_version(file) for file in self.files]

    def read(self, rows: NDArray[np.int64]) -> Iterator[tuple[str, bytes]]:
        for row in rows:
            path = self.files[row]
            try:
                if (size := path.stat().st_size) > MAX_FILE:
                    raise BadFile(f"{path} has {size} bytes, more than the {MAX_FILE} allowed for an image.")
                yield str(path), path.read_bytes()
            except OSError as error:
                if isinstance(error, BadFile):
                    raise
                raise InaccessibleFile(f"{path} cannot be read: {error.strerror}.") from error

    def sizes(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for file in self.files:
            yield str(file), image_size(file, str(file))


def class_folders(split: Split) -> tuple[str, ...] | None:
    """The names of the folders of a split, by label; None if its images are not in folders."""
    if not isinstance(split, EncodedSplit) or not isinstance(split.images, ImageFiles):
        return None
    folders = {label: file.parent.name for label, file in zip(split.labels.tolist(), split.images.files, strict=True)}
    return tuple(folders[label] for label in sorted(folders))


def file_version(path: Path) -> tuple[Any, ...]:
    """What changes when a file does."""
    status = path.stat()
    return str(path.absolute()), status.st_size, status.st_mtime_ns, status.st_ctime_ns


def check_size_options(size: int | None, channels: int | None) -> None:
    if size is not None and not 1 <= size <= MAX_SIZE:
        raise BadOption(f"`size` must be 1…{MAX_SIZE}, not {size}.")
    if channels not in (None, 1, 3):
        raise BadOption(f"`channels` must be 1 or 3, not {channels}.")


def common_size(root: Path, splits: Mapping[SplitName, EncodedImages]) -> tuple[int, int]:
    """The (height, width) that all images have."""
    sizes: dict[tuple[int, int], str] = {}
    for images in splits.values():
        for where, size in images.sizes():
            sizes.setdefault(size, where)
            if len(sizes) > 1:
                (one, two) = (f"{where} is {width}×{height}" for (height, width), where in sizes.items())
                raise BadOption(f"The images in {root} differ in size ({one}, {two}); pass `size`.")
    height, width = next(iter(sizes))
    if max(height, width) > MAX_SIZE:
        raise BadOption(
            f"The images in {root} are {width}×{height}, more than {MAX_SIZE} along a side; pass `size` to resize them."
        )
    return height, width


def resized_crop(image: Image.Image, size: int) -> Image.Image:
    """Resize(size) and CenterCrop(size) of torchvision, identical to the pixel."""
    width, height = image.size
    short = min(width, height)
    if short != size:
        width, height = int(size * width / short), int(size * height / short)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return image.crop((left, top, left + size, top + size))
