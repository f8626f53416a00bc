"""webdataset: tar shards of `key.jpg` (or .png, .webp, .bmp) with a label in `key.cls` or `key.json`, gzipped or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.data.encoded import EXTENSIONS, MAX_FILE, DecodeSplits, as_needed, file_version
from condense_once.data.image_io import image_size
from condense_once.data.limits import check_memory
from condense_once.data.metadata import read_json
from condense_once.data.safe_tar import TarReader, first_name, is_gzip, open_tar
from condense_once.data.shards import find_shards, make_encoded_source
from condense_once.data.source import Source, SourceInfo, SplitName
from condense_once.errors import BadFile, InaccessibleFile

LABEL_KEYS = ("label", "cls", "class")  # of a .json
NAME_FILES = ("classnames.txt", "classes.txt")  # beside the shards, one name a line
MAX_LABEL = 1 << 16  # bytes of a .cls or .json


@dataclass(frozen=True)
class TarImage:
    """An encoded image in a tar: by its offset, or in memory if the tar is compressed."""

    shard: Path
    name: str
    size: int
    offset: int
    content: bytes | None = None


@dataclass(frozen=True)
class TarImages:
    """Encoded images in tar files."""

    members: tuple[TarImage, ...]

    def __len__(self) -> int:
        return len(self.members)

    @property
    def listing(self) -> list[tuple[str, str, int]]:
        return [(image.shard.name, image.name, image.size) for image in self.members]

    @property
    def versions(self) -> list[tuple[Any, ...]]:
        return [file_version(shard) for shard in dict.fromkeys(image.shard for image in self.members)]

    def read(self, rows: NDArray[np.int64]) -> Iterator[tuple[str, bytes]]:
        for row in rows:
            image = self.members[row]
            where = f"{image.name} in {image.shard}"
            if image.content is not None:
                yield where, image.content
                continue
            try:
                with image.shard.open("rb") as file:
                    file.seek(image.offset)
                    yield where, file.read(image.size)
            except OSError as error:
                raise InaccessibleFile(f"{image.shard} cannot be read: {error.strerror or error}.") from error

    def sizes(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for where, content in self.read(np.arange(len(self))):
            yield where, image_size(content, where)


def is_webdataset(path: Path) -> bool:
    """Whether the first file in a tar is one of a sample."""
    first = first_name(path)
    return first is not None and _parts(first)[1] in (*EXTENSIONS, ".cls", ".json")


def is_webdataset_folder(folder: Path) -> bool:
    return bool(_shards(folder))


def load_webdataset(
    path: Path,
    *,
    size: int | None = None,
    channels: int | None = None,
    like: SourceInfo | None = None,
    decode: DecodeSplits = as_needed,
) -> Source:
    """The source in a shard or a folder of shards; `classnames.txt` beside them may name the classes."""
    images: dict[SplitName, TarImages] = {}
    labels: dict[SplitName, list[Any]] = {}
    stored = unpacked = 0  # bytes of compressed shards, and of their images in memory
    for split, shards in _shards(path).items():
        samples: list[tuple[TarImage, Any]] = []
        for shard in shards:
            found = _samples(shard)
            samples += found
            if is_gzip(shard):
                stored += shard.stat().st_size
                unpacked += sum(image.size for image, _ in found)
                check_memory(unpacked, stored, str(path))
        images[split] = TarImages(tuple(member for member, _ in samples))
        labels[split] = [label for _, label in samples]
    names = _class_names(path if path.is_dir() else path.parent)
    return make_encoded_source(
        path, images, labels, classes=names, size=size, channels=channels, like=like, decode=decode
    )


def _shards(path: Path) -> dict[SplitName, list[Path]]:
    """The shards of each split; of compressed tars, which may hold anything, those with samples."""
    found = find_shards(path, ".tar", ".tar.gz", ".tgz")
    shards = {
        split: [file for file in files if not is_gzip(file) or is_webdataset(file)] for split, files in found.items()
    }
    return {split: files for split, files in shards.items() if files}


def _samples(shard: Path) -> list[tuple[TarImage, Any]]:
    images: dict[str, TarImage] = {}
    labels: dict[str, Any] = {}
    packed = is_gzip(shard)
    with open_tar(shard) as archive:
        for member in archive:
            key, kind = _parts(member.name)
            if kind in EXTENSIONS:
                if key in images:
                    raise BadFile(f"{shard} holds two images called {key!a}; create it again.")
                if member.size > MAX_FILE:
                    raise BadFile(f"{member.name!a} in {shard} has {member.size} bytes, more than {MAX_FILE}; refused.")
                content = archive.read(member) if packed else None
                images[key] = TarImage(shard, member.name, member.size, member.offset_data, content)
            elif kind in (".cls", ".json"):
                labels[key] = _label(archive, member, kind, shard) if labels.get(key) is None else labels[key]
    if missing := [key for key in images if labels.get(key) is None]:
        raise BadFile(f"{shard} has no label for {missing[0]!a}, neither a .cls nor a .json with {LABEL_KEYS[0]!r}.")
    return [(image, labels[key]) for key, image in images.items()]


def _label(archive: TarReader, member: Any, kind: str, shard: Path) -> int | str | None:
    where = f"{member.name!a} in {shard}"
    if member.size > MAX_LABEL:
        raise BadFile(f"{where} has {member.size} bytes, too many for a label.")
    content = archive.read(member)
    if kind == ".cls":
        text = content.decode("utf-8", "replace").strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text or None
    value = read_json(content, where)
    found = next((value[key] for key in LABEL_KEYS if key in value), None) if isinstance(value, dict) else value
    return found if isinstance(found, int | str) else None


def _parts(name: str) -> tuple[str, str]:
    """The key of a sample, with its folder, and its last extension: webdataset splits at the first dot of the name."""
    place = PurePosixPath(name)
    base, _, extension = place.name.partition(".")
    return str(place.with_name(base or "_")), f".{extension.rpartition('.')[2].lower()}"


def _class_names(folder: Path) -> tuple[str, ...] | None:
    for name in NAME_FILES:
        if (folder / name).is_file():
            lines = (folder / name).read_bytes()[: 1 << 22].decode("utf-8", "replace").splitlines()
            return tuple(line.strip() for line in lines if line.strip()) or None
    return None
