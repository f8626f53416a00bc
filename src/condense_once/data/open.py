"""Open real images: a known name or a path of any supported layout in, a `Source` out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from condense_once.data.arrays import ValueRange, is_arrays, is_npy_folder, load_arrays, load_npy_folder, load_npz
from condense_once.data.cifar import is_cifar, load_cifar
from condense_once.data.decoded_cache import Notify, decode_once
from condense_once.data.encoded import DecodeSplits
from condense_once.data.idx import is_idx, load_idx
from condense_once.data.image_folder import is_image_folder, load_image_folder
from condense_once.data.metadata import normalised_like
from condense_once.data.parquet import is_parquet_folder, load_parquet
from condense_once.data.safe_zip import open_zip
from condense_once.data.source import SOURCES, Source, SourceInfo, data_folder
from condense_once.data.webdataset import is_webdataset, is_webdataset_folder, load_webdataset
from condense_once.data.webp_zip import is_webp_zip, load_webp_zip
from condense_once.errors import BadFile, BadOption, CondenseOnceError, InaccessibleFile, MissingFile, UnknownName
from condense_once.files import existing_file
from condense_once.progress import Progress
from condense_once.registry import canonical


class MissingSource(MissingFile):
    """A known source without a usable local copy; `download` is its name if it can be downloaded."""

    download: str | None = None


@dataclass(frozen=True)
class _Options:
    """How a path is read."""

    size: int | None
    channels: int | None
    like: SourceInfo | None
    values: ValueRange | None
    decode: DecodeSplits


@dataclass(frozen=True)
class _Layout:
    what: str
    fits: Callable[[Path], bool]
    load: Callable[[Path, _Options], Source]


_FOLDERS = (
    _Layout("CIFAR batches", is_cifar, lambda path, options: load_cifar(path, options.like)),
    _Layout("idx files", is_idx, lambda path, options: load_idx(path, options.like)),
    _Layout("saved arrays", is_arrays, lambda path, options: load_arrays(path, options.like)),
    _Layout(".npy files", is_npy_folder, lambda path, options: load_npy_folder(path, options.like, options.values)),
    _Layout("parquet files", is_parquet_folder, lambda path, options: _encoded(load_parquet, path, options)),
    _Layout("tar shards", is_webdataset_folder, lambda path, options: _encoded(load_webdataset, path, options)),
)
_ACCEPTED = (
    "a folder of images with one sub-folder per class, the folder or .tar.gz of CIFAR, a folder of idx files, an .npz of"
    " arrays, parquet files of Hugging Face, .tar or .tar.gz shards of webdataset, or a .zip of stacked images"
)


def open_source(
    spec: str | Path,
    *,
    data_dir: Path | None = None,
    size: int | None = None,
    channels: int | None = None,
    like: str | None = None,
    values: ValueRange | None = None,
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> Source:
    """The source called `spec`, or in the file or folder `spec`.

    A name takes precedence over a path; to open a folder called `cifar10`, write `./cifar10` or pass a `Path`. `CIFAR10` and
    `cifar-10` are `cifar10`, too, unless there is such a path. Formats are recognised by content, never by file name.

    `size` and `channels` apply to image files, in folders, parquet files and tar shards. They are decoded once, into a cache:
    `progress` counts them, and `notify` receives why they are not cached. Mean and std are those of the known source
    `like`, else those stored with the source, else computed. With `values="unit"`, arrays of floats are pixels in 0…1.
    """
    if not isinstance(spec, str | PathLike):
        raise BadOption(
            f"A source is a Source, a path or a name, not {type(spec).__name__}; make one of arrays by Source(name,"
            " classes, mean, std, {'train': ArraySplit(images, labels)})."
        )
    model = SOURCES.get(canonical(like, SOURCES.names()) or like) if like is not None else None
    options = _Options(size, channels, model, values, partial(decode_once, progress=progress, notify=notify))
    path, named = Path(spec), isinstance(spec, str) and spec in SOURCES
    try:
        if not named and path.is_dir():
            source = _from_folder(path, options)
        elif not named and path.exists():
            source = _from_file(path, options)
        elif isinstance(spec, Path) or spec != path.name:
            raise MissingFile(f"There is no file or folder {spec}.")
        else:
            source = normalised_like(_by_name(spec, data_dir), model)
    except CondenseOnceError:
        raise
    except OSError as error:
        raise InaccessibleFile(f"{spec} cannot be read: {error.strerror or error}.") from error
    _, height, width = shape = next(iter(source.splits.values())).shape
    if size not in (None, height) or size not in (None, width) or channels not in (None, shape[0]):
        raise BadOption(
            f"{spec} has images of {width}×{height} in {shape[0]} channels; only image folders, parquet files and tar shards"
            " can be opened with another `size` or `channels`."
        )
    return source


def as_source(source: Source | str | Path, *, data_dir: Path | None = None, size: int | None = None) -> Source:
    """`source` itself, or the one with this name or path."""
    return source if isinstance(source, Source) else open_source(source, data_dir=data_dir, size=size)


def is_here(info: SourceInfo, data_dir: Path | None = None) -> bool:
    """Whether a known source can be opened by name without a download."""
    return info.load is not None or (data_folder(data_dir) / info.name).is_dir()


def _by_name(name: str, data_dir: Path | None) -> Source:
    try:
        info = SOURCES.get(canonical(name, SOURCES.names()) or name)
    except UnknownName as error:
        raise UnknownName(f"{error} A path works too, but there is no file or folder {name}.") from None
    if info.load is not None:
        return info.load()
    try:
        if is_here(info, data_dir):
            return load_arrays(data_folder(data_dir) / info.name)
        problem = MissingSource(f"{info.name} is not on this machine; {_how_to_get(info.name)}.")
    except BadFile as error:
        reason = str(error).partition(";")[0].rstrip(".")
        problem = MissingSource(f"The local copy of {info.name} is damaged ({reason}); {_how_to_get(info.name)}.")
    problem.download = info.name if _can_download(info.name) else None
    raise problem


def _how_to_get(name: str) -> str:
    return "download it" if _can_download(name) else "it cannot be downloaded, so pass the path of your copy"


def _can_download(name: str) -> bool:
    from condense_once.data.fetch import DOWNLOADS  # here: local sources need no network code

    return name in DOWNLOADS


def _from_folder(path: Path, options: _Options) -> Source:
    fitting = [layout for layout in _FOLDERS if layout.fits(path)]
    if len(fitting) > 1:
        raise BadFile(
            f"{path} holds {' and '.join(layout.what for layout in fitting)}; put them into separate folders."
        )
    if fitting:
        return fitting[0].load(path, options)
    if is_image_folder(path):
        return _encoded(load_image_folder, path, options)
    raise BadFile(f"{path} holds no source; pass {_ACCEPTED}.")


def _encoded(load: Callable[..., Source], path: Path, options: _Options) -> Source:
    return load(path, size=options.size, channels=options.channels, like=options.like, decode=options.decode)


def _from_file(path: Path, options: _Options) -> Source:
    with existing_file(path).open("rb") as file:  # `existing_file`: reading a pipe could block for ever
        start = file.read(512)
    if start.startswith(b"PK"):
        with open_zip(path) as archive:
            names = archive.namelist()
        if is_webp_zip(names):
            return load_webp_zip(path, options.like)
        return load_npz(path, options.like, options.values)
    if start.startswith(b"PAR1"):
        return _encoded(load_parquet, path, options)
    if start.startswith(b"\x1f\x8b") or start[257:262] == b"ustar":
        if is_webdataset(path):
            return _encoded(load_webdataset, path, options)
        return load_cifar(path, options.like)
    raise BadFile(f"{path} is not a source; pass {_ACCEPTED}.")
