"""CIFAR-10 and CIFAR-100 as published: pickled batches, in a folder or a tar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from condense_once.data.catalogue import CIFAR10, CIFAR100
from condense_once.data.metadata import class_names, normalised_like
from condense_once.data.safe_tar import open_tar
from condense_once.data.source import ArraySplit, Source, SourceInfo
from condense_once.data.unpickle import load_plain
from condense_once.errors import BadFile
from condense_once.text import plural


@dataclass(frozen=True)
class _Layout:
    info: SourceInfo
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    meta: str
    labels: str  # keys in the batches and in the meta file
    names: str

    @property
    def files(self) -> tuple[str, ...]:
        return *self.train, *self.test, self.meta


_LAYOUTS = (
    _Layout(
        info=CIFAR10,
        folder="cifar-10-batches-py",
        train=("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"),
        test=("test_batch",),
        meta="batches.meta",
        labels="labels",
        names="label_names",
    ),
    _Layout(
        info=CIFAR100,
        folder="cifar-100-python",
        train=("train",),
        test=("test",),
        meta="meta",
        labels="fine_labels",
        names="fine_label_names",
    ),
)


def is_cifar(folder: Path) -> bool:
    """Whether a folder holds CIFAR files, directly or one level down, complete or not."""
    return bool(_folders(folder))


def load_cifar(path: Path, like: SourceInfo | None = None) -> Source:
    """CIFAR-10 or CIFAR-100 from a folder, `.tar` or `.tar.gz`."""
    found = _read_folders(path) if path.is_dir() else _read_tar(path)
    if not found:
        raise BadFile(
            f"{path} holds neither {_LAYOUTS[0].folder} nor {_LAYOUTS[1].folder}, nor images and labels of webdataset; pass"
            " another file."
        )
    if len(found) > 1:
        raise BadFile(f"{path} holds both {_LAYOUTS[0].folder} and {_LAYOUTS[1].folder}; pass one of them.")
    ((layout, files),) = found.items()
    if missing := [name for name in layout.files if name not in files]:
        raise BadFile(f"{path} lacks the file {missing[0]} of {layout.info.name}; download it again.")
    contents = {name: _dict(files[name], f"{name} in {path}") for name in layout.files}
    names = class_names(_get(contents[layout.meta], layout.names), f"{layout.meta} in {path}")
    if len(names) != len(layout.info.classes):
        raise BadFile(f"{layout.meta} in {path} names {len(names)} classes, not {len(layout.info.classes)}.")
    train, test = (_split(layout, part, contents, path) for part in (layout.train, layout.test))
    source = Source(layout.info.name, names, layout.info.mean, layout.info.std, {"train": train, "test": test})
    return normalised_like(source, like)


def _split(
    layout: _Layout, part: tuple[str, ...], contents: Mapping[str, Mapping[object, object]], path: Path
) -> ArraySplit:
    images, labels = [], []
    for name in part:
        where = f"{name} in {path}"
        data, numbers = _get(contents[name], "data"), _get(contents[name], layout.labels)
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072:
            raise BadFile(f"{where} does not hold images as uint8 [n, 3072]; download it again.")
        last = len(layout.info.classes) - 1
        if not isinstance(numbers, list) or not all(type(label) is int and 0 <= label <= last for label in numbers):
            raise BadFile(f"{where} does not hold a list of labels 0…{last}; download it again.")
        if len(numbers) != len(data):
            raise BadFile(
                f"{where} has {plural(len(data), 'image')} but {plural(len(numbers), 'label')}; download it again."
            )
        images.append(data.reshape(-1, 3, 32, 32))
        labels.extend(numbers)
    return ArraySplit(np.concatenate(images), np.array(labels, np.int64))


def _dict(data: bytes, where: str) -> Mapping[object, object]:
    content = load_plain(data, where)
    if not isinstance(content, dict):
        raise BadFile(f"{where} does not hold a dict, as CIFAR files do; download it again.")
    return content


def _get(content: Mapping[object, object], key: str) -> object:
    return content.get(key, content.get(key.encode()))  # some tools write keys as bytes


def _folders(path: Path) -> dict[_Layout, Path]:
    found = {}
    for layout in _LAYOUTS:
        if (path / layout.folder).is_dir():
            found[layout] = path / layout.folder
        elif path.name == layout.folder or sum((path / name).is_file() for name in layout.files) > 1:
            found[layout] = path
    return found


def _read_folders(path: Path) -> dict[_Layout, dict[str, bytes]]:
    return {
        layout: {name: (folder / name).read_bytes() for name in layout.files if (folder / name).is_file()}
        for layout, folder in _folders(path).items()
    }


def _read_tar(path: Path) -> dict[_Layout, dict[str, bytes]]:
    """The CIFAR files in a tar, read into memory: nothing is extracted to disk."""
    wanted = {f"{layout.folder}/{name}": (layout, name) for layout in _LAYOUTS for name in layout.files}
    found: dict[_Layout, dict[str, bytes]] = {}
    with open_tar(path) as archive:
        for member in archive:
            if (known := wanted.get(str(PurePosixPath(member.name)))) is None:
                continue
            layout, name = known
            if name in found.setdefault(layout, {}):
                raise BadFile(f"{path} holds {member.name} twice; download it again.")
            found[layout][name] = archive.read(member)
    return found
