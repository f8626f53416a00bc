"""Installed condensed sets, of this package and of others; their names work wherever a path does."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from condense_once.condensed.file import SetFile
from condense_once.condensed.huggingface import SET_FILE, is_dataset_folder
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption, MissingFile, UnknownName
from condense_once.registry import Registry

FOLDER = Path(__file__).parent.parent / "bundled"


@dataclass(frozen=True)
class BundledSet:
    """A set `NAME.safetensors` in the folder of a package."""

    name: str
    summary: str
    folder: Path = FOLDER

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.safetensors"


SETS: Registry[BundledSet] = Registry("sets")
SETS.add(
    BundledSet(
        "cifar10-idc-ipc10",
        "CIFAR-10 condensed by idc to 10 images per class, factor 2, ranked: resize it to any budget",
    )
)
SETS.add(
    BundledSet(
        "cifar10-nested-ipc10",
        "CIFAR-10 condensed by tgdd to 10 images per class, factor 2, nested: stronger at every size",
    )
)
SETS.add(
    BundledSet(
        "cifar10-real-ipc10",
        "real CIFAR-10 images as patches, 10 images per class, factor 2: the init of condensation, not its result",
    )
)


def find_set(spec: str | Path) -> Path:
    """The file at a path, in a dataset folder for Hugging Face, or of a bundled set; what exists takes precedence."""
    if not isinstance(spec, str | PathLike):
        raise BadOption(f"A file of a condensed set goes by its path or bundled name, not {type(spec).__name__}.")
    path = Path(spec)
    if path.is_dir() and not is_dataset_folder(path):
        raise BadOption(
            f"{path} is a folder, not the file of a condensed set; `condense-once import` makes one of the images in it,"
            " `condense-once condense` condenses them."
        )
    if path.exists():
        return path / SET_FILE if is_dataset_folder(path) else path
    if str(spec) not in SETS and (path.suffix or path.parent != Path()):
        raise MissingFile(f"There is no file {path}.")
    try:
        return SETS.get(str(spec)).path
    except UnknownName as error:
        raise UnknownName(f"There is no file {spec}. {error}") from None


def load(spec: str | Path, first: int | None = None, *, mmap: bool = False) -> CondensedSet:
    """Load a condensed set by path or bundled name; with `first`, only that many patches are read.

    The set is a copy in memory, whatever becomes of its file. With `mmap` it stays in the file, for sets larger than the
    memory: then nobody may change the file in place while the set is in use, and truncating it ends the process.

    >>> load("cifar10-real-ipc10").counts().tolist()
    [40, 40, 40, 40, 40, 40, 40, 40, 40, 40]
    """
    return SetFile.open(find_set(spec), mmap=mmap).read(first)


def as_set(data: CondensedSet | str | Path) -> CondensedSet:
    """`data` itself, or the set with this path or bundled name."""
    if not isinstance(data, CondensedSet | str | PathLike):
        raise BadOption(
            f"A condensed set is a CondensedSet, a path or the name of a bundled set, not {type(data).__name__}; make one of"
            " arrays or tensors by CondensedSet.from_mosaics."
        )
    return data if isinstance(data, CondensedSet) else load(data)
