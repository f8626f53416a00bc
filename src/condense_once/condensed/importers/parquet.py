"""A parquet file of images and labels, as Hugging Face datasets and our own export are; needs the extra `hf`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from condense_once.condensed.exporters import PARQUET_KEY
from condense_once.condensed.importers.format import Format, ImportOptions, Numbers, ParsedFile
from condense_once.condensed.importers.sniff import OpenedFiles
from condense_once.data.metadata import read_json
from condense_once.data.parquet import load_parquet
from condense_once.errors import BadFile


def _recognises(opened: OpenedFiles) -> bool:
    return opened.kind == "parquet" and len(opened.values) == 1


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    (path,) = opened.values
    source = load_parquet(path, size=options.size)
    split = next(iter(source.splits.values()))
    said = _description(path)
    mean, std = (_numbers(said, name, path) for name in ("mean", "std"))
    return ParsedFile(
        split.take(slice(None)), split.labels, space="pixels", factor=1 if said else None, classes=source.classes,
        mean=mean, std=std,
    )  # fmt: skip


def _description(path: Path) -> dict[str, Any]:
    """What our own export says of itself."""
    from pyarrow import parquet  # present, as the images were read

    stored = (parquet.read_schema(path).metadata or {}).get(PARQUET_KEY.encode())
    said = read_json(stored, f"The metadata of {path}") if stored else {}
    return said if isinstance(said, dict) else {}


def _numbers(said: dict[str, Any], name: str, path: Path) -> Numbers | None:
    match said.get(name):
        case None:
            return None
        case list() as numbers if len(numbers) in (1, 3) and all(type(one) in (int, float) for one in numbers):
            return tuple(map(float, numbers))
    raise BadFile(f"The metadata of {path} has an invalid {name}; export it again.")


FORMAT = Format("parquet", "a Hugging Face parquet file of images and labels", _recognises, _read, frozenset({"size"}))
