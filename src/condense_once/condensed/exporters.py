"""Ways out: condensed sets for people who use other tools."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption, MissingExtra
from condense_once.files import atomic_file, atomic_folder
from condense_once.registry import Registry


@dataclass(frozen=True)
class Exporter:
    name: str
    summary: str
    write: Callable[[CondensedSet, Path, bool], list[str]]  # (set, output, force) → notes for the user


EXPORTERS: Registry[Exporter] = Registry("exporters")


def export_set(data: CondensedSet, format_name: str, path: Path, *, force: bool = False) -> list[str]:
    """Write a set in another format; the sentences returned say what did not survive the way."""
    return EXPORTERS.get(format_name).write(data, path, force)


def pixel_patches(data: CondensedSet) -> tuple[NDArray[np.uint8], list[str]]:
    """Patches as 8-bit colours `[n, ch, h, w]`, and a note if values had to be clipped."""
    if data.space.kind == "zca":
        raise BadOption(f"{data.name} is ZCA-whitened and has no colours to export; export it as npz.")
    colours = data.space.to_pixels(data.patches())
    clipped = float(((colours < -0.002) | (colours > 1.002)).mean())
    notes = [f"{clipped:.1%} of the values lie outside what a pixel can show and were clipped."] if clipped else []
    return np.rint(colours.clip(0, 1) * 255).astype(np.uint8), notes


def _write_folder(data: CondensedSet, path: Path, force: bool) -> list[str]:  # folders are never replaced
    pictures, notes = pixel_patches(data)
    names = [_folder_name(label, name) for label, name in enumerate(data.classes)]
    with atomic_folder(path) as folder:
        for name in names:
            (folder / name).mkdir()
        for row, (label, png) in enumerate(zip(data.labels, _pngs(pictures), strict=True)):
            (folder / names[label] / f"{row:06d}.png").write_bytes(png)
    return notes


def _write_npz(data: CondensedSet, path: Path, force: bool) -> list[str]:
    arrays = {
        "images": data.patches(),
        "labels": data.labels,
        "classes": np.array(data.classes),
        "space": np.array(data.space.kind),
        "mean": np.array(data.space.mean),
        "std": np.array(data.space.std),
        "factor": np.array(1),  # patches are decoded
        "origin": data.origin,
        **{f"scores/{metric}": values for metric, values in data.scores.items()},
    }
    if data.soft_labels is not None:
        arrays["soft_labels"] = data.soft_labels
    if data.space.zca:
        arrays["zca"] = np.array(json.dumps(dict(data.space.zca)))
    with atomic_file(path, force=force) as out:
        np.savez_compressed(out, **arrays)  # type: ignore[arg-type]  # numpy's stubs take the arrays for its flags
    return []


def _write_idc(data: CondensedSet, path: Path, force: bool) -> list[str]:
    import torch

    if data.space.kind == "zca":
        raise BadOption(f"{data.name} is ZCA-whitened, and IDC's files hold pixels; export it as npz.")
    mosaics, labels = data.mosaics()
    scale = np.float32(255 if data.space.kind == "pixels" else 1)
    images = data.space.to_pixels(mosaics.astype(np.float32) / scale)
    buffer = io.BytesIO()
    torch.save([torch.from_numpy(np.ascontiguousarray(images)), torch.from_numpy(labels)], buffer)
    with atomic_file(path, force=force) as out:
        out.write(buffer.getbuffer())
    notes = [f"IDC's files do not store the factor: read this one with factor {data.factor}."]
    if data.size[0] % data.factor or data.size[1] % data.factor:
        notes.append(
            "The image side is not divisible by the factor: cells moved to the last row or column lose a line."
        )
    if data.soft_labels is not None:
        notes.append("Soft labels are left out; the file holds classes only.")
    return notes


def _write_parquet(data: CondensedSet, path: Path, force: bool) -> list[str]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Writing parquet files", "hf") from None

    pictures, notes = pixel_patches(data)
    image = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
    features = {"image": {"_type": "Image"}, "label": {"names": list(data.classes), "_type": "ClassLabel"}}
    schema = pyarrow.schema(
        {"image": image, "label": pyarrow.int64()},
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    rows = [{"bytes": png, "path": f"{row:06d}.png"} for row, png in enumerate(_pngs(pictures))]
    table = pyarrow.table({"image": pyarrow.array(rows, image), "label": data.labels}, schema=schema)
    with atomic_file(path, force=force) as out:
        pyarrow.parquet.write_table(table, out)
    return notes


def _pngs(pictures: NDArray[np.uint8]) -> Iterator[bytes]:
    for picture in pictures:
        buffer = io.BytesIO()
        Image.fromarray(picture.transpose(1, 2, 0).squeeze()).save(buffer, "PNG")
        yield buffer.getvalue()


def _folder_name(label: int, name: str) -> str:
    """A class's folder: sorted like the labels, and safe whatever the class is called."""
    safe = "".join(letter if letter.isalnum() or letter in "-_ " else "_" for letter in name)
    return f"{label:03d}-{safe}"


EXPORTERS.add(Exporter("folder", "PNG files, one folder a class (full-size patches)", _write_folder))
EXPORTERS.add(Exporter("npz", "arrays of full-size patches with labels and value space", _write_npz))
EXPORTERS.add(Exporter("idc", "IDC's data.pt: mosaics in 0…1 and labels", _write_idc))
EXPORTERS.add(Exporter("parquet", "Hugging Face datasets: images and class labels (extra: hf)", _write_parquet))
