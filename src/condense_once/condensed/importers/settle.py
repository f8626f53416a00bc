"""Putting together what a file says and what the caller says, or refusing in one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once import __version__
from condense_once.condensed.importers.format import Facts, Format, Found
from condense_once.condensed.set import MAX_CLASSES, CondensedSet
from condense_once.condensed.space import Space, SpaceKind
from condense_once.data.known import SOURCES
from condense_once.errors import BadFile, BadOption

# Condensers clamp now and then, not after each step: pixels may stick out a little, normalised values by far.
PIXEL_RANGE = (-0.5, 1.5)


def settle(chosen: Format, found: Found, facts: Facts, files: Sequence[Path]) -> CondensedSet:
    """The set that the files and the caller together describe."""
    where = files[0].name
    _check_arrays(found, where)
    space = _space(found, facts, where)
    factor = facts.factor if facts.factor is not None else found.factor
    if factor is None:
        raise BadOption(
            f"How many patches a side are stored in each image of {where} cannot be known from the file;"
            " pass --factor (1 for plain images, 2 for IDC's CIFAR sets, 3 for its ImageNet sets)."
        )
    images, storing = _stored(found.images, space, facts)
    classes, naming = _classes(found, facts)
    notes = [*found.notes, *storing, *naming]
    return CondensedSet.from_mosaics(
        images,
        found.labels.astype(np.int64),
        factor=factor,
        space=space,
        classes=classes,
        soft_labels=None if found.soft_labels is None else found.soft_labels.astype(np.float32),
        name=facts.name or files[0].stem,
        provenance={
            "imported": {
                "format": chosen.name,
                "files": {path.name: _sha256(path) for path in files if path.is_file()},
                "notes": notes,
                "by": f"condense-once {__version__}",
                **found.details,
            }
        },
    )


def _check_arrays(found: Found, where: str) -> None:
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


def _space(found: Found, facts: Facts, where: str) -> Space:
    kind = facts.space or found.space
    low, high = float(found.images.min()), float(found.images.max())
    if found.images.dtype == np.uint8:
        if kind not in (None, "pixels"):
            raise BadOption(f"{where} holds 8-bit colours, so its value space is pixels, not {kind}.")
        kind = "pixels"
    if kind is None:
        raise BadOption(
            f"What the values of {where} ({low:.2f}…{high:.2f}) mean cannot be known from the file;"
            " pass --space pixels, normalised or zca."
        )
    if kind == "pixels" and found.images.dtype != np.uint8 and not PIXEL_RANGE[0] <= low <= high <= PIXEL_RANGE[1]:
        raise BadOption(
            f"The values of {where} run from {low:.2f} to {high:.2f}, so they are no pixels in 0…1;"
            " pass --space normalised or zca."
        )
    mean, std = _statistics(found, facts, kind, where)
    if kind == "normalised" and min(mean) > 0 and low >= 0:
        raise BadOption(
            f"No value of {where} is below zero ({low:.2f}…{high:.2f}), so it was not normalised; pass --space pixels."
        )
    whitening = (facts.whitening or found.whitening) if kind == "zca" else None
    if kind == "zca" and not whitening:
        raise BadOption(
            f"A whitened set must say how it was whitened; pass --whitening kip or kornia, and --dataset for {where}."
        )
    return Space(kind, mean, std, whitening or {})


def _statistics(found: Found, facts: Facts, kind: SpaceKind, where: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if (facts.mean is None) != (facts.std is None):
        raise BadOption("Pass --mean and --std together, one number a channel.")
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


def _stored(images: NDArray[Any], space: Space, facts: Facts) -> tuple[NDArray[Any], list[str]]:
    """The images in the type that their space is stored in."""
    if space.kind != "pixels":
        values = images.astype(facts.dtype)
        if not np.isfinite(values).all():
            raise BadOption(
                f"Values up to {np.abs(images).max():.3g} do not fit into {facts.dtype}; pass --dtype float32."
            )
        return values, []
    if images.dtype == np.uint8:
        return images, []
    outside = float(((images < 0) | (images > 1)).mean())
    notes = [f"Rounded to 8 bits; {outside:.2%} of the values lay outside 0…1 and were clipped."]
    return np.rint(images.clip(0, 1) * 255).astype(np.uint8), notes


def _classes(found: Found, facts: Facts) -> tuple[tuple[str, ...], list[str]]:
    present = int(found.labels.max()) + 1
    wide = found.soft_labels.shape[1] if found.soft_labels is not None else present
    if given := facts.classes or found.classes:
        return tuple(given), []
    if facts.dataset:
        return SOURCES.get(facts.dataset).classes, []
    names = tuple(str(label) for label in range(max(present, wide)))
    return names, [f"Class names are not known, so the {len(names)} classes are called by their numbers."]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
