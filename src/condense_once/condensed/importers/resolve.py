"""Putting together what a file says and what the caller says, or refusing in one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once._version import __version__
from condense_once.condensed.importers.format import Format, ImportOptions, Numbers, ParsedFile
from condense_once.condensed.set import MAX_CLASSES, CondensedSet
from condense_once.condensed.space import Space, SpaceKind, to_bytes
from condense_once.data.catalogue import SOURCES
from condense_once.errors import BadFile, BadOption

REGULARISATION = 0.1  # of KIP's and MTT's whitening of CIFAR


def settle(chosen: Format, found: ParsedFile, facts: ImportOptions, files: Sequence[Path]) -> CondensedSet:
    """The set that the files and the caller together describe."""
    where = _printable(files[found.main].name)
    _check_arrays(found, where)
    for option in ("space", "factor", "mean", "std", "classes"):
        said, given = getattr(found, option), getattr(facts, option)
        if None not in (said, given) and said != given:
            raise BadOption(f"{where} itself says {option} {said}, not {given}; leave out --{option}.")
    _ask_for_all(found, facts, where)
    space, assumed = _space(found, facts, where)
    factor = facts.factor if facts.factor is not None else found.factor
    if factor is None:
        raise BadOption(
            f"How many patches a side are stored in each image of {where} cannot be known from the file;"
            " pass --factor (1 for plain images, 2 for IDC's CIFAR sets, 3 for its ImageNet sets)."
        )
    images, storing = _stored(found.images, space, facts)
    classes, naming = _classes(found, facts)
    provenance: dict[str, Any] = {
        "imported": {
            "format": chosen.name,
            "files": {_printable(path.name): _sha256(path) for path in files if path.is_file()},
            "notes": [*found.notes, *assumed, *storing, *naming],
            "by": f"condense-once {__version__}",
            **found.details,
        }
    }
    if facts.method is not None:
        provenance["method"] = facts.method.lower()
    labels = found.labels.astype(np.int64)
    soft = None if found.soft_labels is None else found.soft_labels.astype(np.float32)
    name = _printable(facts.name or files[found.main].stem)
    if found.extras is not None and factor == 1:
        return CondensedSet(
            images, labels, classes, images.shape[2:], factor, space, found.extras.origin, soft, found.extras.scores,
            found.extras.ranking, name, provenance,
        )  # fmt: skip
    return CondensedSet.from_mosaics(
        images, labels, factor=factor, space=space, classes=classes, soft_labels=soft, name=name, provenance=provenance
    )


def _check_arrays(found: ParsedFile, where: str) -> None:
    images, labels = found.images, found.labels
    if images.ndim != 4 or images.shape[1] not in (1, 3) or images.size == 0:
        raise BadFile(f"The images of {where} must be [n, 1 or 3 channels, height, width], not {list(images.shape)}.")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise BadFile(f"The images of {where} are {images.dtype}; only uint8 and floating point have a meaning here.")
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu":
        raise BadFile(
            f"The {len(images)} images of {where} need as many whole-number labels, not {labels.dtype} {list(labels.shape)}."
        )
    if labels.min() < 0 or labels.max() >= MAX_CLASSES:
        raise BadFile(f"The labels of {where} run from {labels.min()} to {labels.max()}; classes are numbered from 0.")
    if not np.isfinite(images).all():
        raise BadFile(f"The images of {where} hold values that are not finite numbers.")


def _ask_for_all(found: ParsedFile, facts: ImportOptions, where: str) -> None:
    """Ask at once where several things are to be asked; a single one is asked for by whoever needs it, with the reason."""
    known = {
        "--space pixels, normalised or zca": facts.space or found.space or found.images.dtype == np.uint8,
        "--factor F": facts.factor or found.factor,
        "--dataset NAME (or --mean and --std)": facts.dataset or facts.mean or found.mean,
    }
    if len(lacking := [option for option, answer in known.items() if not answer]) > 1:
        raise BadOption(f"{where} does not say all that is needed to use it; pass {', '.join(lacking)}.")


def _space(found: ParsedFile, facts: ImportOptions, where: str) -> tuple[Space, list[str]]:
    """The value space, and what had to be assumed of a whitening."""
    kind = facts.space or found.space
    bytes_given = found.images.dtype == np.uint8
    low, high = float(found.images.min()), float(found.images.max())
    if bytes_given and kind not in (None, "pixels"):
        raise BadOption(f"{where} holds 8-bit colours, so its value space is pixels, not {kind}.")
    kind = "pixels" if bytes_given else kind
    if kind is None:
        raise BadOption(
            f"What the values of {where} ({low:.2f}…{high:.2f}) mean cannot be known from the file;"
            " pass --space pixels, normalised or zca."
        )
    if kind != "zca" and (facts.whitening or facts.regularisation is not None):
        raise BadOption(f"{where} is not whitened ({kind}); leave out --whitening and --regularisation.")
    zca, assumed = _whitening(found, facts, where) if kind == "zca" else ({}, [])
    space = Space(kind, *_statistics(found, facts, kind, where), zca)
    if not bytes_given and (problem := space.contradiction(low, high)):
        if found.space is not None:
            raise BadFile(f"{where} should hold {kind}, but its {problem}.")
        advice = "divide them by 255 first" if low >= 0 and 1 < high <= 255 else "pass another --space"
        raise BadOption(f"{where} cannot be {kind}: its {problem}; {advice}.")
    return space, assumed


def _whitening(found: ParsedFile, facts: ImportOptions, where: str) -> tuple[dict[str, Any], list[str]]:
    if found.zca is not None:
        if facts.whitening or facts.regularisation is not None:
            raise BadOption(f"{where} itself says how it was whitened; leave out --whitening and --regularisation.")
        return dict(found.zca), []
    recipe = facts.whitening or ("kip" if found.soft_labels is not None else None)
    if recipe is None or facts.dataset is None:
        raise BadOption(
            f"To use the whitened {where} one has to know how it was whitened; pass --whitening kip or kornia, and --dataset."
        )
    strength = REGULARISATION if facts.regularisation is None else facts.regularisation
    certain = facts.whitening is not None and facts.regularisation is not None
    note = f"Taken as whitened by {recipe} with regularisation {strength}; pass --whitening or --regularisation if not."
    return {"recipe": recipe, "regularisation": strength, "source": facts.dataset}, [] if certain else [note]


def _statistics(found: ParsedFile, facts: ImportOptions, kind: SpaceKind, where: str) -> tuple[Numbers, Numbers]:
    if (facts.mean is None) != (facts.std is None):
        raise BadOption("Pass --mean and --std together, one number per channel.")
    channels = found.images.shape[1]
    source = SOURCES.get(facts.dataset) if facts.dataset else None
    mean = facts.mean or found.mean or (source.mean if source else None)
    std = facts.std or found.std or (source.std if source else None)
    if mean is None or std is None:
        purpose = "train on" if kind == "pixels" else "undo the normalisation of"
        raise BadOption(
            f"To {purpose} {where} its mean and deviation are needed; pass --dataset NAME, or --mean and --std."
        )
    if len(mean) != channels or len(std) != channels:
        raise BadOption(f"{where} has {channels} channels, but {len(mean)} means and {len(std)} deviations are given.")
    return mean, std


def _stored(images: NDArray[Any], space: Space, facts: ImportOptions) -> tuple[NDArray[Any], list[str]]:
    """The images in the type that their space is stored in."""
    if space.kind != "pixels":
        dtype = facts.dtype or "float32"
        if np.abs(images).max() > np.finfo(dtype).max:
            raise BadOption(f"Values up to {np.abs(images).max():.3g} do not fit into {dtype}.")
        return images.astype(dtype), [f"Stored as {dtype}, {images.dtype} before."] if images.dtype != dtype else []
    if facts.dtype is not None:
        raise BadOption("Pixels are stored in 8 bits; leave out --dtype.")
    if images.dtype == np.uint8:
        return images, []
    outside = float(((images < 0) | (images > 1)).mean())
    return to_bytes(images), [f"Rounded to 8 bits; {outside:.2%} of the values lay outside 0…1 and were clipped."]


def _classes(found: ParsedFile, facts: ImportOptions) -> tuple[tuple[str, ...], list[str]]:
    if given := facts.classes or found.classes:
        return tuple(given), []
    if facts.dataset:
        classes, there = SOURCES.get(facts.dataset).classes, len(np.unique(found.labels))
        few = f"There are images of {there} of the {len(classes)} classes of {facts.dataset}; check the --dataset."
        return classes, [few] if there < len(classes) else []
    count = int(found.labels.max()) + 1 if found.soft_labels is None else found.soft_labels.shape[1]
    names = tuple(str(label) for label in range(count))
    return names, [f"Class names are not known, so the {count} classes are called by their numbers."]


def _printable(name: str) -> str:
    """A file's name as text: names on disk need not be."""
    return name.encode("utf-8", "replace").decode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
