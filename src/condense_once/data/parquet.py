"""Parquet files of Hugging Face datasets: a column of images `{bytes, path}` and one of labels. Needs the extra `hf`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.data.encoded import MAX_FILE, DecodeSplits, as_needed, file_version
from condense_once.data.image_io import image_size
from condense_once.data.limits import check_memory
from condense_once.data.metadata import class_names, read_json
from condense_once.data.shards import find_shards, make_encoded_source
from condense_once.data.source import Source, SourceInfo, SplitName
from condense_once.errors import BadFile, CondenseOnceError, MissingExtra
from condense_once.text import first_line

IMAGE_COLUMNS = ("image", "img", "picture", "photo")
LABEL_COLUMNS = ("label", "labels", "fine_label", "target", "class")
BATCH = 16  # rows read at a time


@dataclass(frozen=True)
class ParquetImages:
    """Encoded images in a column of parquet files."""

    shards: tuple[tuple[Path, str, int], ...]  # file, column of the bytes, rows

    def __len__(self) -> int:
        return sum(rows for *_, rows in self.shards)

    @property
    def listing(self) -> list[tuple[str, str, int]]:
        return [(path.name, column, path.stat().st_size) for path, column, _ in self.shards]

    @property
    def versions(self) -> list[tuple[Any, ...]]:
        return [file_version(path) for path, *_ in self.shards]

    def read(self, rows: NDArray[np.int64]) -> Iterator[tuple[str, bytes]]:
        """In the order asked for; rows in the order of the file are read in one pass, others by row group."""
        ends = np.cumsum([0, *(count for *_, count in self.shards)])
        reader: Iterator[tuple[int, bytes]] | None = None
        shard_at, place, content = -1, -1, b""
        for row in rows:
            shard = int(np.searchsorted(ends, row, side="right")) - 1
            wanted = int(row - ends[shard])
            if reader is None or shard != shard_at or wanted < place:
                reader, shard_at, place = _rows(*self.shards[shard][:2], start=wanted), shard, -1
            while place < wanted:
                if (found := next(reader, None)) is None:
                    raise BadFile(f"{self.shards[shard][0]} is damaged: it ends before its row {wanted}.")
                place, content = found
            yield f"row {wanted} of {self.shards[shard][0]}", content

    def sizes(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for where, content in self.read(np.arange(len(self))):
            yield where, image_size(content, where)


def is_parquet_folder(folder: Path) -> bool:
    return bool(find_shards(folder, ".parquet"))


def load_parquet(
    path: Path,
    *,
    size: int | None = None,
    channels: int | None = None,
    like: SourceInfo | None = None,
    decode: DecodeSplits = as_needed,
) -> Source:
    """The source in a parquet file, or a folder of them; class names are those of the dataset's `ClassLabel`."""
    images: dict[SplitName, ParquetImages] = {}
    labels: dict[SplitName, list[Any]] = {}
    classes: tuple[str, ...] | None = None
    for split, files in find_shards(path, ".parquet").items():
        shards, labels[split] = [], []
        for file in files:
            column, numbers, names = _open(file)
            if names is not None and classes not in (None, names):
                raise BadFile(f"{file} has other class names than the files before it; put them into separate folders.")
            classes = names or classes
            shards.append((file, column, len(numbers)))
            labels[split].extend(numbers)
        images[split] = ParquetImages(tuple(shards))
    return make_encoded_source(
        path, images, labels, classes=classes, size=size, channels=channels, like=like, decode=decode
    )


def _open(path: Path) -> tuple[str, list[Any], tuple[str, ...] | None]:
    """The column of the images' bytes, the labels, and the class names if the file has them."""
    with _opened(path) as file:
        schema = file.schema_arrow
        features = _features(schema, path)
        image = _column(schema.names, features, "Image", IMAGE_COLUMNS, path)
        label = _column(schema.names, features, "ClassLabel", LABEL_COLUMNS, path)
        kind = str(schema.field(image).type)
        if "bytes" not in kind and "binary" not in kind:
            raise BadFile(f"The column {image!a} of {path} has the type {kind}, not images as {{bytes, path}}.")
        check_memory(64 * file.metadata.num_rows, path.stat().st_size, f"The labels of {path}")
        values = file.read(columns=[label]).column(label).to_pylist()
        column = f"{image}.bytes" if kind.startswith("struct") else image
        names = features.get(label, {}).get("names")
        return column, values, None if names is None else class_names(names, f"the metadata of {path}")


def _rows(path: Path, column: str, *, start: int) -> Iterator[tuple[int, bytes]]:
    """Row number and bytes of each image, from the row group of `start` on."""
    with _opened(path, dictionary=column) as file:
        first = 0
        for group in range(file.metadata.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if first + count > start:
                row = first
                for batch in file.iter_batches(BATCH, row_groups=[group], columns=[column]):
                    values = batch.column(0)
                    values = values.field("bytes") if hasattr(values, "field") else values
                    for value in values:
                        content = value.as_py()
                        if not isinstance(content, bytes) or not 0 < len(content) <= MAX_FILE:
                            raise BadFile(f"Row {row} of {path} has no image of its own; embed the images in the file.")
                        yield row, content
                        row += 1
            first += count


@contextmanager
def _opened(path: Path, dictionary: str | None = None) -> Iterator[Any]:
    """A parquet file; damage found while the block reads from it also raises `BadFile`."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Reading parquet files", "hf") from None
    try:
        # As dictionaries, or else a small file could repeat one large value very often.
        with pyarrow.parquet.ParquetFile(path, read_dictionary=[dictionary] if dictionary else None) as file:
            groups = range(file.metadata.num_row_groups)
            unpacked = max((file.metadata.row_group(group).total_byte_size for group in groups), default=0)
            check_memory(unpacked, path.stat().st_size, str(path))
            yield file
    except CondenseOnceError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise BadFile(f"{path} cannot be read as parquet ({first_line(error)[:160]}).") from error


def _features(schema: Any, path: Path) -> dict[str, dict[str, Any]]:
    """What Hugging Face's metadata says of each column."""
    stored = (schema.metadata or {}).get(b"huggingface")
    value = read_json(stored, f"The metadata of {path}") if stored else None
    match value:
        case {"info": {"features": dict() as features}}:
            return {str(name): feature for name, feature in features.items() if isinstance(feature, dict)}
    return {}


def _column(
    names: list[str], features: dict[str, dict[str, Any]], kind: str, usual: tuple[str, ...], path: Path
) -> str:
    """The column of this kind: by its usual name, or else the only one that the metadata declares."""
    declared = [name for name in names if features.get(name, {}).get("_type") == kind]
    by_name = [name for name in usual if name in (declared or names)]
    if not by_name and len(declared) != 1:
        what = "images" if kind == "Image" else "labels"
        raise BadFile(
            f"{path} has no column of {what} called {' or '.join(usual)}, only {', '.join(map(ascii, names))}; rename one."
        )
    return by_name[0] if by_name else declared[0]
