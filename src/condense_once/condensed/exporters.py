"""Exporters: condensed sets for other tools."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from condense_once.condensed.bundled import as_set
from condense_once.condensed.ddranking import write_ddranking
from condense_once.condensed.file import save
from condense_once.condensed.huggingface import write_dataset_folder
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import to_uint8
from condense_once.condensed.stored_dtype import StoredDtype, check_dtype
from condense_once.errors import BadOption, MissingExtra
from condense_once.files import atomic_file, atomic_folder
from condense_once.registry import Registry

PARQUET_KEY = "condense_once"  # of what a parquet file says of itself beside Hugging Face's own metadata

SOFT_COLUMN = "soft_label"  # of a parquet file


@dataclass(frozen=True)
class Exporter:
    name: str
    summary: str
    suffix: str  # file extension that selects it
    write: Callable[..., list[str]]  # (set, output, force) → notes; then the data type, if there is a choice
    dtypes: tuple[str, ...] = ()  # of images, to choose from


DTYPES = get_args(StoredDtype)
EXPORTERS: Registry[Exporter] = Registry("exporters")


def export_set(
    data: CondensedSet | str | Path,
    path: str | Path,
    format_name: str | None = None,
    *,
    dtype: StoredDtype | None = None,
    force: bool = False,
) -> list[str]:
    """Write a set in another format, chosen by name or file extension; returns notes on what the format cannot hold.

    `dtype` is the data type of the images, in formats that have a choice; uint8 is for sets of pixels.
    """
    data, target = as_set(data), Path(path)
    exporter = find_exporter(target, format_name)
    if dtype is None:
        return exporter.write(data, target, force)
    if dtype not in exporter.dtypes:
        choice = f"must be {' or '.join(exporter.dtypes)}" if exporter.dtypes else "is fixed; leave it out"
        raise BadOption(f"`dtype` of the format {exporter.name} {choice}, not {dtype!r}.")
    if dtype == "uint8":
        check_dtype(data.space.kind, dtype, data.name)
    return exporter.write(data, target, force, dtype)


def find_exporter(path: Path, format_name: str | None = None) -> Exporter:
    """The exporter of this name, or else of the path's extension."""
    if format_name is not None:
        return EXPORTERS.get(format_name)
    for exporter in EXPORTERS:
        if exporter.suffix == path.suffix:
            return exporter
    raise BadOption(
        f"The extension of {path} is not a known format; pass `format_name`: {', '.join(EXPORTERS.names())}."
    )


def pixel_patches(data: CondensedSet) -> tuple[NDArray[np.uint8], list[str]]:
    """Patches as 8-bit pixels `[n, ch, h, w]`, and a note if values were clipped."""
    if data.space.kind == "zca":
        raise BadOption(f"{data.name} is ZCA-whitened and has no pixels to export; export it as npz.")
    pixels = data.space.to_pixels(data.patches())
    clipped = float(((pixels < -0.002) | (pixels > 1.002)).mean())
    notes = [f"{clipped:.1%} of the values are outside the pixel range and were clipped."] if clipped else []
    return to_uint8(pixels), notes


def _write_folder(data: CondensedSet, path: Path, force: bool) -> list[str]:  # folders are never replaced
    images, notes = pixel_patches(data)
    width = max(3, len(str(len(data.classes) - 1)))  # so that folders sort by label
    names = [f"{label:0{width}d}-{_safe(name)}" for label, name in enumerate(data.classes)]
    with atomic_folder(path) as folder:
        for name in names:
            (folder / name).mkdir()
        for row, (label, png) in enumerate(zip(data.labels, _pngs(images), strict=True)):
            (folder / names[label] / f"{row:06d}.png").write_bytes(png)
    return notes + _left_out(data)


def _write_npz(data: CondensedSet, path: Path, force: bool, dtype: StoredDtype = "float32") -> list[str]:
    images = data.patches()
    arrays = {
        "images": to_uint8(images) if dtype == "uint8" else images.astype(dtype, copy=False),
        "labels": data.labels,
        "classes": np.array(data.classes),
        "space": np.array(data.space.kind),
        "mean": np.array(data.space.mean),
        "std": np.array(data.space.std),
        "factor": np.array(1),  # patches are decoded
        "origin": data.origin,
        **{f"scores/{metric}": values for metric, values in data.scores.items()},
    }
    if data.ranking is not None:
        arrays["ranking"] = np.array(json.dumps(asdict(data.ranking)))
    if data.soft_labels is not None:
        arrays |= {"soft_labels": data.soft_labels, "label_kind": np.array(data.label_kind)}
    if data.space.zca:
        arrays["zca"] = np.array(json.dumps(dict(data.space.zca)))
    with atomic_file(path, force=force) as out:
        np.savez_compressed(out, **arrays)  # type: ignore[arg-type]  # numpy's stubs take the arrays for flags
    notes = []
    if data.factor > 1:
        notes.append(
            f"Patches are decoded to full size: the factor changes from {data.factor} to 1, and each patch is an image."
        )
    if data.provenance:
        notes.append("Provenance is left out: this format cannot hold it.")
    return notes


def _write_idc(data: CondensedSet, path: Path, force: bool) -> list[str]:
    import torch

    if data.space.kind == "zca":
        raise BadOption(f"{data.name} is ZCA-whitened, but IDC files hold pixels; export it as npz.")
    mosaics, labels = data.mosaics()
    scale = np.float32(255 if data.space.kind == "pixels" else 1)
    pixels = data.space.to_pixels(mosaics.astype(np.float32) / scale)
    images = pixels.clip(0, 1)
    buffer = io.BytesIO()
    torch.save([torch.from_numpy(np.ascontiguousarray(images)), torch.from_numpy(labels)], buffer)
    with atomic_file(path, force=force) as out:
        out.write(buffer.getbuffer())
    notes = [f"IDC files do not store the factor: read this one with factor {data.factor}."]
    if data.size[0] % data.factor or data.size[1] % data.factor:
        notes.append("The image side is not divisible by the factor: cells in the last row or column lose a line.")
    if clipped := float((np.abs(pixels - images) > 0.002).mean()):
        notes.append(f"{clipped:.1%} of the values are outside the pixel range and were clipped.")
    return notes + _left_out(data)


def _write_parquet(data: CondensedSet, path: Path, force: bool) -> list[str]:
    images, notes = pixel_patches(data)
    write_parquet(data, images, path, force=force)
    return notes + _left_out(replace(data, soft_labels=None))


def _write_dataset_folder(data: CondensedSet, path: Path, force: bool) -> list[str]:  # folders are never replaced
    return write_dataset_folder(data, path)


def _write_ddranking(data: CondensedSet, path: Path, force: bool) -> list[str]:
    return write_ddranking(data, path)


def write_parquet(data: CondensedSet, images: NDArray[np.uint8], path: Path, *, force: bool = False) -> None:
    """Images `[n, ch, h, w]`, labels and soft labels as a parquet file with the features of Hugging Face."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Writing parquet files", "hf") from None

    image = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
    features: dict[str, Any] = {
        "image": {"_type": "Image"},
        "label": {"names": list(data.classes), "_type": "ClassLabel"},
    }
    said = {"factor": 1, "mean": data.space.mean, "std": data.space.std}
    columns = {"image": image, "label": pyarrow.int64()}
    if data.soft_labels is not None:
        columns[SOFT_COLUMN] = pyarrow.list_(pyarrow.float32())
        features[SOFT_COLUMN] = {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "Sequence"}
        said |= {"label_kind": data.label_kind}
    schema = pyarrow.schema(
        columns,
        metadata={"huggingface": json.dumps({"info": {"features": features}}), PARQUET_KEY: json.dumps(said)},
    )
    rows = [{"bytes": png, "path": f"{row:06d}.png"} for row, png in enumerate(_pngs(images))]
    soft = {} if data.soft_labels is None else {SOFT_COLUMN: data.soft_labels.tolist()}
    table = pyarrow.table({"image": pyarrow.array(rows, image), "label": data.labels, **soft}, schema=schema)
    with atomic_file(path, force=force) as out:
        pyarrow.parquet.write_table(table, out)


def _write_layered(data: CondensedSet, path: Path, force: bool) -> list[str]:
    save(data, path, force=force, codec="layered")
    return ["Cells are stored in layers, with loss; every prefix of the file is a set."]


def _pngs(images: NDArray[np.uint8]) -> Iterator[bytes]:
    for picture in images:
        buffer = io.BytesIO()
        Image.fromarray(picture[0] if len(picture) == 1 else picture.transpose(1, 2, 0)).save(buffer, "PNG")
        yield buffer.getvalue()


def _left_out(data: CondensedSet) -> list[str]:
    """What a format of images and labels cannot hold."""
    lost = {
        "soft labels": data.soft_labels is not None,
        "scores": bool(data.scores),
        "ranking": data.ranking is not None,
    }
    names = [name for name, is_lost in lost.items() if is_lost]
    return [f"Left out, as this format cannot hold them: {', '.join(names)}."] if names else []


def _safe(name: str) -> str:
    """A class name that is safe in a folder name."""
    return "".join(letter if letter.isalnum() or letter in "-_ " else "_" for letter in name)[:100]


EXPORTERS.add(Exporter("folder", "PNG files, one folder per class (full-size patches)", "", _write_folder))
EXPORTERS.add(Exporter("npz", "arrays of full-size patches with labels and value space", ".npz", _write_npz, DTYPES))
EXPORTERS.add(Exporter("idc", "IDC's data.pt: mosaics in 0…1 and labels", ".pt", _write_idc))
EXPORTERS.add(
    Exporter(
        "layered", "a condensed set in layers, from coarse to fine: any prefix is a set", ".safetensors", _write_layered
    )
)
EXPORTERS.add(
    Exporter("parquet", "Hugging Face datasets: images and class labels (extra: hf)", ".parquet", _write_parquet)
)
EXPORTERS.add(
    Exporter(
        "huggingface",
        "a dataset folder for Hugging Face: parquet, dataset card and the set itself (extra: hf)",
        ".hf",
        _write_dataset_folder,
    )
)
EXPORTERS.add(
    Exporter(
        "ddranking",
        "tensors that DD-Ranking and DC-BENCH evaluate: images.pt, labels.pt, dc.pt",
        ".ddranking",
        _write_ddranking,
    )
)
