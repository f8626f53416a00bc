"""Every kind of file that the project reads: a small valid example, and what a reader gets from it.

`read` returns what was read as named digests. Files with checksums of ours must give the same or nothing; of others, what
changed may be read as something else, as nobody can tell.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import struct
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from condense_once.condensed.bundled import load
from condense_once.condensed.exporters import export_set
from condense_once.condensed.file import SetFile, save
from condense_once.condensed.importers import ImportOptions, import_set
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.condensed.verify import verify
from condense_once.container import Beginning, LocalFile
from condense_once.data.arrays import save_arrays
from condense_once.data.open import open_source
from condense_once.data.source import ArraySplit, Source
from condense_once.data.webp_zip import save_webp_zip
from condense_once.device import open_set
from condense_once.errors import MissingExtra

Content = dict[str, str]  # digests by name


@dataclass(frozen=True)
class Target:
    name: str
    make: Callable[[Path], None]  # valid files in an empty folder
    read: Callable[[Path], Content]
    checked: bool = False  # by checksums of ours
    partial: bool = False  # what is damaged may be missing from what is read


def digest(*values: Any) -> str:
    made = hashlib.sha256()
    for value in values:
        made.update(np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
        made.update(repr(getattr(value, "shape", "")).encode())
    return made.hexdigest()


def tiny_set() -> CondensedSet:
    """Eighteen ranked patches of 8×8 in three classes."""
    rng = np.random.default_rng(0)
    data = CondensedSet.from_mosaics(
        rng.integers(0, 256, (18, 3, 8, 8), dtype=np.uint8),
        np.arange(18) % 3,
        factor=1,
        space=Space("pixels", (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)),
        classes=("ant", "bee", "cat"),
        name="tiny",
        provenance={"made by": "an attack", "scores": [{"metrics": ["lbpe"], "seed": 0}]},
    )
    ranked = data.take(np.arange(18).reshape(3, 6).T.ravel())  # classes take turns
    return replace(ranked, ranking=Ranking("lbpe"), scores={"lbpe": np.linspace(0, 1, 18, dtype=np.float32)})


def tiny_source() -> Source:
    rng = np.random.default_rng(0)
    splits = {
        name: ArraySplit(rng.integers(0, 256, (count, 3, 8, 8), dtype=np.uint8), np.arange(count) % 3)
        for name, count in (("train", 12), ("test", 6))
    }
    return Source("tiny", ("ant", "bee", "cat"), (0.5,) * 3, (0.25,) * 3, splits)  # type: ignore[arg-type]


def read_set(folder: Path) -> Content:
    """All that reads a set: whole, verified, and on a device."""
    path = folder / "a.safetensors"
    verify(path)  # returns what it finds, whatever that is
    data, subset = load(path), open_set(path).take(ipc=1)
    scores = {metric: digest(values) for metric, values in data.scores.items()}
    return {
        "set": digest(data.cells, data.labels, data.origin, data.classes, data.size, data.factor, data.space, scores),
        "facts": digest(data.ranking, data.name, data.provenance),
        "device": digest(subset.patches, subset.labels),
    }


def make_layered_set(folder: Path) -> None:
    save(tiny_set(), folder / "a.safetensors", codec="layered")


def read_layered_set(folder: Path) -> Content:
    """All prefixes of a layered file of one group that end with a layer: a cut file has fewer."""
    path = folder / "a.safetensors"
    verify(path)
    load(path)
    layered, content = SetFile.open(path).layered, Content()
    stops = [] if layered is None else [stop for _, stop in layered.prefixes()]
    for layer, stop in enumerate(stops):
        data = SetFile(Beginning(LocalFile(path), stop)).read()
        content[f"layer {layer}"] = digest(data.cells, data.labels, data.classes, data.space, data.factor)
    return content


def read_source(path: Path) -> Content:
    source = open_source(path)
    content = {"classes": digest(source.classes), "statistics": digest(source.mean, source.std)}
    return content | {name: digest(split.take(slice(None)), split.labels) for name, split in source.splits.items()}


def _imports(*names: str, **options: Any) -> Callable[[Path], Content]:
    def read(folder: Path) -> Content:
        data = import_set([folder / name for name in names], ImportOptions(**options))
        return {"set": digest(data.cells, data.labels, data.classes, data.soft_labels)}

    return read


def _sources(name: str) -> Callable[[Path], Content]:
    return lambda folder: read_source(folder / name)


CIFAR = {"dataset": "cifar10"}


def _pair(scale: float = 1.0, shift: float = 0.0) -> tuple[Any, Any]:
    images = np.random.default_rng(0).random((20, 3, 8, 8), dtype=np.float32)
    return images * np.float32(scale) + np.float32(shift), np.repeat(np.arange(10), 2)


def _torch(value: Callable[[Any], Any], *, zipped: bool = True) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        import torch  # only to make files; reading needs none

        torch.save(value(torch), folder / "a.pt", _use_new_zipfile_serialization=zipped)

    return make


def _dc_file(torch: Any) -> Any:
    pair = [torch.from_numpy(array) for array in _pair(4, -2)]
    return {"data": [pair, pair], "accs_all_exps": {"ConvNet": [np.float64(0.5)]}}


def _make_mtt(folder: Path) -> None:
    import torch

    for name, array in zip(("images.pt", "labels.pt"), _pair(4, -2), strict=True):
        torch.save(torch.from_numpy(array), folder / name)


def _make_kip(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.normal(size=(30, 8, 8, 3)).astype(np.float32))
    np.save(folder / "y.npy", rng.normal(size=(30, 10)).astype(np.float32))


def _make_arrays_npz(folder: Path) -> None:
    images, labels = _pair()
    np.savez(folder / "a.npz", images=images, labels=labels)


def _make_source_npz(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez_compressed(
        folder / "a.npz", images=rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8), labels=np.arange(12) % 3
    )


def _make_grid(folder: Path) -> None:
    rng = np.random.default_rng(0)
    grid = np.zeros((102, 22, 3), np.uint8)  # ten rows of two tiles of 8, with black borders of 2
    for row in range(10):
        for column in range(2):
            tile = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            grid[2 + 10 * row : 10 + 10 * row, 2 + 10 * column : 10 + 10 * column] = tile
    Image.fromarray(grid).save(folder / "a.png")


def _make_idx(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for prefix, count in (("train", 6), ("t10k", 3)):
        for kind, array in (
            ("images-idx3", rng.integers(0, 256, (count, 4, 5), dtype=np.uint8)),
            ("labels-idx1", (np.arange(count) % 3).astype(np.uint8)),
        ):
            raw = struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()
            packed = gzip.compress(raw, mtime=0) if prefix == "train" else raw
            (folder / f"{prefix}-{kind}-ubyte{'.gz' if prefix == 'train' else ''}").write_bytes(packed)


def _make_cifar(name: str, mode: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        rng = np.random.default_rng(0)
        batches = {f"data_batch_{number}": 2 for number in range(1, 6)} | {"test_batch": 2}
        files: dict[str, Any] = {
            batch: {"data": rng.integers(0, 256, (count, 3072), dtype=np.uint8), "labels": [3, 8]}
            for batch, count in batches.items()
        }
        files["batches.meta"] = {"label_names": [f"class{n}" for n in range(10)], "num_vis": 3072}
        with tarfile.open(folder / name, mode) as archive:  # type: ignore[call-overload]
            for member, content in files.items():
                data = pickle.dumps(content, 2)
                info = tarfile.TarInfo(f"cifar-10-batches-py/{member}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))

    return make


def _png(image: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


def _make_parquet(folder: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("Making a parquet file", "hf") from None
    rng = np.random.default_rng(0)
    pictures = [{"bytes": _png(one), "path": None} for one in rng.integers(0, 256, (12, 6, 6, 3), dtype=np.uint8)]
    features = {"image": {"_type": "Image"}, "label": {"names": ["ant", "bee"], "_type": "ClassLabel"}}
    columns = {
        "image": pa.array(pictures, pa.struct({"bytes": pa.binary(), "path": pa.string()})),
        "label": pa.array(np.arange(12) % 2),
    }
    table = pa.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, folder / "a.parquet", row_group_size=7)


def _make_webdataset(folder: Path) -> None:
    rng = np.random.default_rng(0)
    with tarfile.open(folder / "a.tar", "w") as archive:
        for row, image in enumerate(rng.integers(0, 256, (8, 6, 6, 3), dtype=np.uint8)):
            for name, content in ((f"s{row:04d}.png", _png(image)), (f"s{row:04d}.cls", b"%d" % (row % 2))):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


def _make_images(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(6):
        place = folder / "images" / ("ant", "bee")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        kind = ("png", "jpg", "webp", "bmp", "gif", "ppm")[number]
        image.save(place / f"{number}.{kind}")


def _read_checkpoint(folder: Path) -> Content:
    from condense_once.condensing.checkpoint import load_checkpoint

    saved = load_checkpoint(folder / "a.checkpoint")
    arrays = {name: digest(array) for name, array in saved.arrays.items()}
    facts = {name: value for name, value in vars(saved).items() if name != "arrays"}
    return {"checkpoint": digest(facts, sorted(arrays.items()))}


def _make_checkpoint(folder: Path) -> None:
    from condense_once.condensing.checkpoint import Checkpoint

    rng = np.random.default_rng(0)
    arrays = {"images": rng.random((3, 2, 3, 8, 8), dtype=np.float32), "momentum": np.zeros((3, 2), np.float32)}
    Checkpoint({"method": "dm", "ipc": 2}, {"iterations": 5}, 3, 1.5, [(1, 0.5), (2, 0.4)], [0.1], arrays).save(
        folder / "a.checkpoint"
    )


def _make_store(folder: Path) -> None:
    from condense_once.studies.store import Store, StoredSelection

    with closing(Store(folder / "a.sqlite")) as store:
        for number in range(12):
            store.add_evaluation(
                f"e{number}", {"net": "n"}, {"accuracy": number / 12}, work=float(number + 1), seconds=1.0
            )
            store.add_selection(f"s{number}", {"rule": "yoco"}, StoredSelection(np.arange(number), f"e{number}", None))
        store.add_scoring_run("w", {"net": "n", "training": 5}, bytes(range(256)) * 40, work=1.0, seconds=1.0)
        store.add_study("one", {"study": {"name": "one"}, "home": None})


def _read_store(folder: Path) -> Content:
    from condense_once.studies.store import Store, StoredSelection

    found: Content = {}
    with closing(Store(folder / "a.sqlite")) as store:
        for number in range(12):
            if (evaluation := store.evaluation(f"e{number}")) is not None:
                found[f"e{number}"] = digest(evaluation.result, evaluation.error, evaluation.work)
            if (selection := store.selection(f"s{number}")) is not None:
                known = selection if isinstance(selection, str) else (selection.rows.tolist(), selection.evaluation_key)
                found[f"s{number}"] = digest(known)
        if (content := store.scoring_bytes("w")) is not None:
            found["w"] = digest(content)
        run = store.scoring_run("w")
        if run is not None:
            found["run"] = digest(run if isinstance(run, str) else (run.key, run.epochs, run.seconds))
        found |= {f"study {digest(spec)}": "" for spec in store.study_specs()}
        store.seconds_per_work("n")
        store.add_selection("new", {}, StoredSelection(np.arange(2), "e", None))  # a damaged store still takes results
    return found


STUDY = """summary = "two rules"
sets = ["cifar10-real-ipc10"]
test = "cifar10-sample"
rules = ["yoco", "random"]
sizes = ["1", "2", "30%"]
nets = ["convnet-d1-w8"]
protocol = "quick"
repeats = 2
epochs = ["0-1"]
scoring_epochs = 3

[labels]
yoco = "ours"
"""


def _read_study(folder: Path) -> Content:
    from condense_once.studies.study_file import read_study

    return {"study": digest(read_study(folder / "a.toml"))}


def _export(name: str) -> Callable[[Path], None]:
    return lambda folder: void(export_set(tiny_set(), folder / name))


def void(_: object) -> None:
    return


TARGETS = (
    Target("set", lambda folder: save(tiny_set(), folder / "a.safetensors"), read_set, checked=True),
    Target("layered set", make_layered_set, read_layered_set, checked=True, partial=True),
    Target("checkpoint", _make_checkpoint, _read_checkpoint, checked=True),
    Target("store", _make_store, _read_store, checked=True, partial=True),
    Target("study", lambda folder: void((folder / "a.toml").write_text(STUDY)), _read_study),
    Target("idc.pt", _torch(lambda torch: [torch.from_numpy(a) for a in _pair()]), _imports("a.pt", factor=2, **CIFAR)),
    Target(
        "old.pt",
        _torch(lambda torch: [torch.from_numpy(a) for a in _pair()], zipped=False),
        _imports("a.pt", factor=1, **CIFAR),
    ),
    Target("dc.pt", _torch(_dc_file), _imports("a.pt", experiment=1, **CIFAR)),
    Target("mtt.pt", _make_mtt, _imports("images.pt", "labels.pt", space="normalised", **CIFAR)),
    Target("kip.npy", _make_kip, _imports("x.npy", "y.npy", space="zca", **CIFAR)),
    Target("import.npz", _make_arrays_npz, _imports("a.npz", factor=1, space="pixels", **CIFAR)),
    Target("export.npz", _export("a.npz"), _imports("a.npz")),
    Target("export.parquet", _export("a.parquet"), _imports("a.parquet")),
    Target("grid.png", _make_grid, _imports("a.png", tile=8, border=2, factor=1, space="pixels", **CIFAR)),
    Target("source.npz", _make_source_npz, _sources("a.npz")),
    Target("arrays", lambda folder: void(save_arrays(tiny_source(), folder / "arrays")), _sources("arrays")),
    Target("idx.gz", _make_idx, _sources(".")),
    Target("source.parquet", _make_parquet, _sources("a.parquet")),
    Target("webdataset.tar", _make_webdataset, _sources("a.tar")),
    Target("cifar.tar", _make_cifar("a.tar", "w"), _sources("a.tar")),
    Target("cifar.tar.gz", _make_cifar("a.tar.gz", "w:gz"), _sources("a.tar.gz")),
    Target("webp.zip", lambda folder: void(save_webp_zip(tiny_source(), folder / "a.zip")), _sources("a.zip")),
    Target("folder", _make_images, _sources("images")),
)
