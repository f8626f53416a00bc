"""The one door to real images: a known name or a path of any layout in, a `Source` out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from condense_once.data.arrays import is_arrays, load_arrays, load_npz
from condense_once.data.cifar import is_cifar, load_cifar
from condense_once.data.idx import is_idx, load_idx
from condense_once.data.image_folder import is_tree, load_tree
from condense_once.data.metadata import normalised_like
from condense_once.data.safe_zip import open_zip
from condense_once.data.source import SOURCES, Source, SourceInfo, data_home
from condense_once.data.webp_zip import is_strips, load_strips
from condense_once.errors import BadFile, BadOption, UnknownName
from condense_once.files import existing_file


@dataclass(frozen=True)
class _Layout:
    what: str
    fits: Callable[[Path], bool]
    load: Callable[[Path, SourceInfo | None], Source]


_FOLDERS = (
    _Layout("CIFAR batches", is_cifar, load_cifar),
    _Layout("idx files", is_idx, load_idx),
    _Layout("saved arrays", is_arrays, load_arrays),
)
_ACCEPTED = (
    "a folder of images with one sub-folder per class, the folder or .tar.gz of CIFAR, a folder of idx files, an .npz of"
    " arrays, or a .zip of strips"
)


def open_source(
    spec: str | Path,
    *,
    home: Path | None = None,
    size: int | None = None,
    channels: int | None = None,
    like: str | None = None,
) -> Source:
    """The source called `spec`, or in the file or folder `spec`.

    A text that is a name means the name; to open a folder called `cifar10`, write `./cifar10` or pass a `Path`. What a
    file is, its content tells, never its name.

    `size` and `channels` say how the images of a folder are to be decoded. Mean and deviation are those of the known
    source `like`; else those that come with the source; else they are measured.
    """
    model = SOURCES.get(like) if like is not None else None
    path, named = Path(spec), isinstance(spec, str) and spec in SOURCES
    try:
        if not named and path.is_dir():
            source = _from_folder(path, size, channels, model)
        elif not named and path.exists():
            source = _from_file(path, model)
        elif isinstance(spec, Path) or spec != path.name:
            raise BadFile(f"There is no file or folder {spec}.")
        else:
            source = normalised_like(_by_name(spec, home), model)
    except OSError as error:
        raise BadFile(f"{spec} cannot be read: {error.strerror or error}.") from error
    _, height, width = shape = next(iter(source.splits.values())).shape
    if size not in (None, height) or size not in (None, width) or channels not in (None, shape[0]):
        raise BadOption(
            f"{spec} has images of {width}×{height} in {shape[0]} channels; only folders of image files can be opened"
            " with another --size or --channels."
        )
    return source


def as_source(source: Source | str | Path, *, home: Path | None = None, size: int | None = None) -> Source:
    """A source itself, or the one of a name or at a path."""
    return source if isinstance(source, Source) else open_source(source, home=home, size=size)


def is_here(info: SourceInfo, home: Path | None = None) -> bool:
    """Whether a known source can be opened by its name, without a download."""
    return info.load is not None or (data_home(home) / info.name).is_dir()


def _by_name(name: str, home: Path | None) -> Source:
    try:
        info = SOURCES.get(name)
    except UnknownName as error:
        raise UnknownName(f"{error} A path works too, but there is no file or folder {name}.") from None
    if info.load is not None:
        return info.load()
    complaint = f"{info.name} is not on this machine"
    if is_here(info, home):
        try:
            return load_arrays(data_home(home) / info.name)
        except BadFile as error:
            complaint = f"{info.name} is damaged ({str(error).rstrip('.')})"
    from condense_once.data.fetch import CATALOGUE  # knows of networks, which what is here does without

    if info.name in CATALOGUE:
        raise BadFile(f"{complaint}; get it with: condense-once data get {info.name}")
    raise BadFile(f"{complaint} and cannot be downloaded; get it yourself and pass its path.")


def _from_folder(path: Path, size: int | None, channels: int | None, like: SourceInfo | None) -> Source:
    fitting = [layout for layout in _FOLDERS if layout.fits(path)]
    if len(fitting) > 1:
        raise BadFile(
            f"{path} holds {' and '.join(layout.what for layout in fitting)}; put them in folders of their own."
        )
    if fitting:
        return fitting[0].load(path, like)
    if is_tree(path):
        return load_tree(path, size=size, channels=channels, like=like)
    raise BadFile(f"{path} holds no source; pass {_ACCEPTED}.")


def _from_file(path: Path, like: SourceInfo | None) -> Source:
    with existing_file(path).open("rb") as file:  # a pipe would be waited for, perhaps for ever
        start = file.read(512)
    if start.startswith(b"PK"):
        with open_zip(path) as archive:
            names = archive.namelist()
        return load_strips(path, like) if is_strips(names) else load_npz(path, like)
    if start.startswith(b"\x1f\x8b") or start[257:262] == b"ustar":
        return load_cifar(path, like)
    raise BadFile(f"{path} is not a source; pass {_ACCEPTED}.")
