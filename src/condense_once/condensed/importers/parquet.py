"""A parquet file of images and labels, as Hugging Face datasets and our own export are; needs the extra `hf`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.exporters import PARQUET_KEY, SOFT_COLUMN
from condense_once.condensed.importers.format import Format, ImportOptions, Numbers, ParsedFile
from condense_once.condensed.importers.sniff import OpenedFiles
from condense_once.condensed.soft_labels import LABEL_KINDS, LabelKind
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
        mean=mean, std=std, soft_labels=_soft_labels(path) if said else None, label_kind=_label_kind(said, path),
    )  # fmt: skip


def _description(path: Path) -> dict[str, Any]:
    """What our own export says of itself."""
    from pyarrow import parquet  # present, as the images were read

    stored = (parquet.read_schema(path).metadata or {}).get(PARQUET_KEY.encode())
    said = read_json(stored, f"The metadata of {path}") if stored else {}
    return said if isinstance(said, dict) else {}


def _soft_labels(path: Path) -> NDArray[np.float32] | None:
    """The soft labels of our own export, if it has any."""
    from pyarrow import parquet

    if SOFT_COLUMN not in parquet.read_schema(path).names:
        return None
    try:
        rows = np.array(parquet.read_table(path, columns=[SOFT_COLUMN])[SOFT_COLUMN].to_pylist(), np.float32)
    except (TypeError, ValueError):  # lists of different lengths, or none
        rows = np.empty(0, np.float32)
    if rows.ndim != 2:
        raise BadFile(f"The soft labels of {path} are no vectors of one length; export it again.")
    return rows


def _label_kind(said: dict[str, Any], path: Path) -> LabelKind | None:
    kind = said.get("label_kind")
    if kind not in (None, *LABEL_KINDS):
        raise BadFile(f"The metadata of {path} has an invalid label_kind; export it again.")
    return cast("LabelKind | None", kind)


def _numbers(said: dict[str, Any], name: str, path: Path) -> Numbers | None:
    match said.get(name):
        case None:
            return None
        case list() as numbers if len(numbers) in (1, 3) and all(type(one) in (int, float) for one in numbers):
            return tuple(map(float, numbers))
    raise BadFile(f"The metadata of {path} has an invalid {name}; export it again.")


FORMAT = Format("parquet", "a Hugging Face parquet file of images and labels", _recognises, _read, frozenset({"size"}))
