"""Combine what a file contains with what the caller passes, or raise."""

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
from condense_once.condensed.space import Space, SpaceKind, to_uint8
from condense_once.data.catalogue import SOURCES
from condense_once.errors import BadFile, BadOption

REGULARISATION = 0.1  # ZCA of KIP and MTT on CIFAR


def resolve(chosen: Format, parsed: ParsedFile, options: ImportOptions, files: Sequence[Path]) -> CondensedSet:
    """The set described by the files and the caller together."""
    where = _printable(files[parsed.main].name)
    _check_arrays(parsed, where)
    for option in ("space", "factor", "mean", "std", "classes"):
        stored, given = getattr(parsed, option), getattr(options, option)
        if None not in (stored, given) and stored != given:
            raise BadOption(f"{where} has {option} {stored}, not {given}; leave out `{option}`.")
    _require_options(parsed, options, where)
    space, assumed = _space(parsed, options, where)
    factor = options.factor if options.factor is not None else parsed.factor
    if factor is None:
        raise BadOption(
            f"{where} does not record its factor, the patches along each side of a stored image;"
            " pass `factor` (1 for plain images, 2 for IDC's CIFAR sets, 3 for its ImageNet sets)."
        )
    images, storing = _stored(parsed.images, space, options)
    classes, naming = _classes(parsed, options)
    provenance: dict[str, Any] = {
        "imported": {
            "format": chosen.name,
            "files": {_printable(path.name): _sha256(path) for path in files if path.is_file()},
            "notes": [*parsed.notes, *assumed, *storing, *naming],
            "by": f"condense-once {__version__}",
            **parsed.details,
        }
    }
    if options.method is not None:
        provenance["method"] = options.method.lower()
    labels = parsed.labels.astype(np.int64)
    soft = None if parsed.soft_labels is None else parsed.soft_labels.astype(np.float32)
    name = _printable(options.name or files[parsed.main].stem)
    if parsed.extras is not None and factor == 1:
        return CondensedSet(
            images, labels, classes, images.shape[2:], factor, space, parsed.extras.origin, soft, parsed.extras.scores,
            parsed.extras.ranking, name, provenance,
        )  # fmt: skip
    return CondensedSet.from_mosaics(
        images, labels, factor=factor, space=space, classes=classes, soft_labels=soft, name=name, provenance=provenance
    )


def _check_arrays(parsed: ParsedFile, where: str) -> None:
    images, labels = parsed.images, parsed.labels
    if images.ndim != 4 or images.shape[1] not in (1, 3) or images.size == 0:
        raise BadFile(f"The images of {where} must be [n, 1 or 3 channels, height, width], not {list(images.shape)}.")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise BadFile(f"The images of {where} must be uint8 or floating point, not {images.dtype}.")
    whole = labels.dtype.kind == "f" and bool((labels == np.rint(labels)).all())  # as DataDAM and DC-BENCH save them
    if labels.shape != (len(images),) or not (labels.dtype.kind in "iu" or whole):
        raise BadFile(
            f"The {len(images)} images of {where} need as many integer labels, not {labels.dtype} {list(labels.shape)}."
        )
    if labels.min() < 0 or labels.max() >= MAX_CLASSES:
        raise BadFile(f"The labels of {where} run from {labels.min()} to {labels.max()}; classes are numbered from 0.")
    if not np.isfinite(images).all():
        raise BadFile(f"The images of {where} contain NaN or infinite values.")


def _require_options(parsed: ParsedFile, options: ImportOptions, where: str) -> None:
    """If several options are missing, name them all at once; a single one is reported where it is needed."""
    known = {
        "`space` (pixels, normalised or zca)": options.space or parsed.space or parsed.images.dtype == np.uint8,
        "`factor`": options.factor or parsed.factor,
        "`dataset` (or `mean` and `std`)": options.dataset or options.mean or parsed.mean,
    }
    if len(missing := [option for option, answer in known.items() if not answer]) > 1:
        raise BadOption(f"{where} lacks information that is needed to use it; pass {', '.join(missing)}.")


def _space(parsed: ParsedFile, options: ImportOptions, where: str) -> tuple[Space, list[str]]:
    """The value space, and notes on assumptions about ZCA."""
    kind = options.space or parsed.space
    is_uint8 = parsed.images.dtype == np.uint8
    low, high = float(parsed.images.min()), float(parsed.images.max())
    if is_uint8 and kind not in (None, "pixels"):
        raise BadOption(f"{where} holds 8-bit pixels, so `space` must be pixels, not {kind}.")
    kind = "pixels" if is_uint8 else kind
    if kind is None:
        raise BadOption(
            f"{where} does not record the space of its values ({low:.2f}…{high:.2f});"
            " pass `space` pixels, normalised or zca."
        )
    if kind != "zca" and (options.zca_method or options.zca_regularisation is not None):
        raise BadOption(f"{where} is not ZCA-whitened ({kind}); leave out `zca_method` and `zca_regularisation`.")
    zca, assumed = _zca(parsed, options, where) if kind == "zca" else ({}, [])
    space = Space(kind, *_statistics(parsed, options, kind, where), zca)
    if not is_uint8 and (problem := space.contradiction(low, high)):
        if parsed.space is not None:
            raise BadFile(f"{where} should be {kind}, but its {problem}.")
        advice = "divide them by 255 first" if low >= 0 and 1 < high <= 255 else "pass another `space`"
        raise BadOption(f"{where} cannot be {kind}: its {problem}; {advice}.")
    return space, assumed


def _zca(parsed: ParsedFile, options: ImportOptions, where: str) -> tuple[dict[str, Any], list[str]]:
    if parsed.zca is not None:
        if options.zca_method or options.zca_regularisation is not None:
            raise BadOption(f"{where} records its ZCA already; leave out `zca_method` and `zca_regularisation`.")
        return dict(parsed.zca), []
    method = options.zca_method or ("kip" if parsed.soft_labels is not None else None)
    if method is None or options.dataset is None:
        raise BadOption(
            f"{where} does not record how it was whitened; pass `zca_method` (kip or kornia) and `dataset`."
        )
    strength = REGULARISATION if options.zca_regularisation is None else options.zca_regularisation
    certain = options.zca_method is not None and options.zca_regularisation is not None
    note = f"Assumed ZCA by {method} with regularisation {strength}; else pass `zca_method` or `zca_regularisation`."
    return {"recipe": method, "regularisation": strength, "source": options.dataset}, [] if certain else [note]


def _statistics(parsed: ParsedFile, options: ImportOptions, kind: SpaceKind, where: str) -> tuple[Numbers, Numbers]:
    if (options.mean is None) != (options.std is None):
        raise BadOption("Pass `mean` and `std` together, one number per channel.")
    channels = parsed.images.shape[1]
    source = SOURCES.get(options.dataset) if options.dataset else None
    mean = options.mean or parsed.mean or (source.mean if source else None)
    std = options.std or parsed.std or (source.std if source else None)
    if mean is None or std is None:
        purpose = "normalise" if kind == "pixels" else "undo the normalisation of"
        raise BadOption(f"Mean and std are needed to {purpose} {where}; pass `dataset`, or `mean` and `std`.")
    if len(mean) != channels or len(std) != channels:
        raise BadOption(f"{where} has {channels} channels, but `mean` has {len(mean)} numbers and `std` {len(std)}.")
    return mean, std


def _stored(images: NDArray[Any], space: Space, options: ImportOptions) -> tuple[NDArray[Any], list[str]]:
    """The images in the dtype of their space."""
    if space.kind != "pixels":
        dtype = options.dtype or "float32"
        if np.abs(images).max() > np.finfo(dtype).max:
            raise BadOption(
                f"Values up to {np.abs(images).max():.3g} overflow {dtype}; rescale them or pass another `dtype`."
            )
        return images.astype(dtype), [f"Stored as {dtype}, {images.dtype} before."] if images.dtype != dtype else []
    if options.dtype is not None:
        raise BadOption("Pixels are stored as uint8; leave out `dtype`.")
    if images.dtype == np.uint8:
        return images, []
    outside = float(((images < 0) | (images > 1)).mean())
    return to_uint8(images), [f"Rounded to 8 bits; {outside:.2%} of the values were outside 0…1 and were clipped."]


def _classes(parsed: ParsedFile, options: ImportOptions) -> tuple[tuple[str, ...], list[str]]:
    if names := options.classes or parsed.classes:
        return tuple(names), []
    if options.dataset:
        classes, there = SOURCES.get(options.dataset).classes, len(np.unique(parsed.labels))
        few = f"There are images of {there} of the {len(classes)} classes of {options.dataset}; check `dataset`."
        return classes, [few] if there < len(classes) else []
    count = int(parsed.labels.max()) + 1 if parsed.soft_labels is None else parsed.soft_labels.shape[1]
    names = tuple(str(label) for label in range(count))
    return names, [f"Class names are unknown; the {count} classes are named by their numbers."]


def _printable(name: str) -> str:
    """A file name as valid text, which names on disk need not be."""
    return name.encode("utf-8", "replace").decode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
