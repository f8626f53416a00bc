"""Combine what a file contains with what the caller passes, or raise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once._version import __version__
from condense_once.condensed.importers.classes import name_classes
from condense_once.condensed.importers.format import (
    Format,
    ImportOptions,
    Numbers,
    ParsedFile,
    Question,
    kernel_statistics,
)
from condense_once.condensed.set import MAX_CLASSES, CondensedSet
from condense_once.condensed.soft_labels import LABEL_KINDS, LabelKind, infer_kind
from condense_once.condensed.space import ZCA_RECIPES, Space, to_uint8
from condense_once.data.catalogue import SOURCES
from condense_once.data.open import open_source
from condense_once.data.source import Source, SourceInfo
from condense_once.errors import BadFile, BadOption

REGULARISATION = 0.1  # ZCA of KIP and MTT on CIFAR


def resolve(chosen: Format, parsed: ParsedFile, options: ImportOptions, files: Sequence[Path]) -> CondensedSet:
    """The set described by the files and the caller together."""
    where = _printable(files[parsed.main].name)
    _check_arrays(parsed, where)
    for option in ("space", "factor", "mean", "std"):
        stored, given = getattr(parsed, option), getattr(options, option)
        if None not in (stored, given) and stored != given:
            raise BadOption(f"{where} has {option} {stored}, not {given}; leave out `{option}`{_or_as_arrays(chosen)}.")
    _ask(parsed, options, where)
    dataset = find_dataset(options, parsed.images.shape[2:])
    parsed, greying = _grey(parsed, options, dataset, where)
    space, assumed = _space(chosen, parsed, options, dataset, where)
    images, storing = _stored(parsed.images, space, options)
    classes, naming = name_classes(parsed, options, dataset, where)
    provenance: dict[str, Any] = {
        "imported": {
            "format": chosen.name,
            "files": {_printable(path.name): _sha256(path) for path in files if path.is_file()},
            "notes": [*parsed.notes, *greying, *assumed, *storing, *naming],
            "by": f"condense-once {__version__}",
            **({} if dataset is None else {"dataset": dataset.name}),
            **parsed.details,
        }
    }
    if options.method is not None:
        provenance["method"] = options.method.lower()
    labels = parsed.labels.astype(np.int64)
    soft = None if parsed.soft_labels is None else parsed.soft_labels.astype(np.float32)
    if soft is not None and soft.shape != (len(labels), len(classes)):
        raise BadFile(
            f"The soft labels of {where} must be [{len(labels)}, {len(classes)}], one number per image and class,"
            f" not {list(soft.shape)}."
        )
    kind = _label_kind(parsed, options, where)
    name = _printable(options.name or files[parsed.main].stem)
    factor = options.factor if options.factor is not None else parsed.factor or 1
    if parsed.extras is not None and factor == 1:
        return CondensedSet(
            images, labels, classes, images.shape[2:], factor, space, parsed.extras.origin, soft, parsed.extras.scores,
            parsed.extras.ranking, name, provenance, kind,
        )  # fmt: skip
    return CondensedSet.from_mosaics(
        images, labels, factor=factor, space=space, classes=classes, soft_labels=soft, label_kind=kind, name=name,
        provenance=provenance,
    )  # fmt: skip


def find_dataset(options: ImportOptions, size: tuple[int, ...]) -> Source | SourceInfo | None:
    """What is known of the dataset that the caller names or whose images are at a path; those of a folder in this size."""
    if options.dataset is None:
        return None
    if isinstance(options.dataset, str) and options.dataset in SOURCES:
        return SOURCES.get(options.dataset)
    resized = Path(options.dataset).is_dir() and size[0] == size[1]
    return open_source(options.dataset, size=size[0] if resized else None)


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


def _ask(parsed: ParsedFile, options: ImportOptions, where: str) -> None:
    """Ask for everything that neither the file nor the caller says, all at once."""
    questions = list(parsed.questions)
    kind = "pixels" if parsed.images.dtype == np.uint8 else options.space or parsed.space
    if kind is None:
        span = f"({float(parsed.images.min()):.2f}…{float(parsed.images.max()):.2f})"
        space = Question("`space`", f"does not record the space of its values {span}", "(pixels, normalised or zca)")
        questions.append(space)
    if not (options.factor or parsed.factor):
        why = "does not record its factor, the patches along each side of a stored image"
        questions.append(
            Question("`factor`", why, "(1 for plain images, 2 for IDC's CIFAR sets, 3 for its ImageNet sets)")
        )
    if kind == "zca" and parsed.zca is None and not (options.zca_method or parsed.soft_labels is not None):
        methods = " or ".join(", ".join(ZCA_RECIPES).rsplit(", ", 1))
        questions.append(Question(f"`zca_method` ({methods})", "does not record how it was whitened"))
    if kind == "zca" and parsed.zca is None and not options.dataset:
        questions.append(Question("`dataset`", "does not record which images its whitening was fitted to"))
    elif not (options.dataset or options.mean or options.std or parsed.mean):
        why = f"needs a mean and std to {'normalise' if kind == 'pixels' else 'undo the normalisation of'} its images"
        questions.append(Question("`dataset` (or `mean` and `std`)", why))
    if len(questions) == 1:
        (one,) = questions
        raise BadOption(f"{where} {one.why}; pass {' '.join([one.option, one.hint]).strip().replace(' ,', ',')}.")
    if questions:
        holds = next((f"{one.why} and " for one in parsed.questions), "")
        options_needed = ", ".join(
            f"{one.option} {one.hint}" if one.hint.startswith("(") else one.option for one in questions
        )
        raise BadOption(f"{where} {holds}lacks information that is needed to use it; pass {options_needed}.")


def _grey(
    parsed: ParsedFile, options: ImportOptions, dataset: Source | SourceInfo | None, where: str
) -> tuple[ParsedFile, list[str]]:
    """Images of a grey dataset in one channel, though programs that save pictures write three equal ones."""
    statistics = options.mean or parsed.mean or (dataset.mean if dataset else ())
    if parsed.images.shape[1] != 3 or len(statistics) != 1:
        return parsed, []
    first = parsed.images[:, :1]
    if (parsed.images != first).any():
        raise BadOption(
            f"{where} has three different channels, but mean and std are those of grey images; pass another `dataset`, or"
            " three numbers each as `mean` and `std`."
        )
    return replace(parsed, images=np.ascontiguousarray(first)), ["Three equal channels are stored as one."]


def _or_as_arrays(chosen: Format) -> str:
    """What to do if the file is none of the format that it looks like, as the rest of a sentence."""
    return "" if chosen.name == "arrays" else f", or pass `format_name` arrays if it is not of {chosen.name}"


def _space(
    chosen: Format, parsed: ParsedFile, options: ImportOptions, dataset: Source | SourceInfo | None, where: str
) -> tuple[Space, list[str]]:
    """The value space, and notes on assumptions about ZCA."""
    is_uint8 = parsed.images.dtype == np.uint8
    kind = options.space or parsed.space or "pixels"
    low, high = float(parsed.images.min()), float(parsed.images.max())
    if is_uint8 and kind != "pixels":
        raise BadOption(f"{where} holds 8-bit pixels, so `space` must be pixels, not {kind}.")
    if kind != "zca" and (options.zca_method or options.zca_regularisation is not None):
        raise BadOption(f"{where} is not ZCA-whitened ({kind}); leave out `zca_method` and `zca_regularisation`.")
    zca, assumed = _zca(parsed, options, where) if kind == "zca" else ({}, [])
    if zca.get("recipe") == "rfad" and parsed.mean is None:
        mean, std, note = kernel_statistics(options, "RFAD")
        parsed, assumed = replace(parsed, mean=mean, std=std), [*assumed, *note]
    space = Space(kind, *_statistics(parsed, options, dataset, where), zca)
    if not is_uint8 and (problem := space.contradiction(low, high)):
        if parsed.space is not None:
            raise BadFile(f"{where} should be {kind}, but its {problem}; store them as such{_or_as_arrays(chosen)}.")
        advice = "divide them by 255 first" if low >= 0 and 1 < high <= 255 else "pass another `space`"
        raise BadOption(f"{where} cannot be {kind}: its {problem}; {advice}.")
    return space, assumed


def _zca(parsed: ParsedFile, options: ImportOptions, where: str) -> tuple[dict[str, Any], list[str]]:
    if parsed.zca is not None:
        if options.zca_method or options.zca_regularisation is not None:
            raise BadOption(f"{where} records its ZCA already; leave out `zca_method` and `zca_regularisation`.")
        return dict(parsed.zca), []
    method = options.zca_method or "kip"
    strength = REGULARISATION if options.zca_regularisation is None else options.zca_regularisation
    certain = options.zca_method is not None and options.zca_regularisation is not None
    note = f"Assumed ZCA by {method} with regularisation {strength}; else pass `zca_method` or `zca_regularisation`."
    dataset = str(options.dataset)
    source = dataset if dataset in SOURCES else str(Path(dataset).resolve())
    return {"recipe": method, "regularisation": strength, "source": source}, [] if certain else [note]


def _statistics(
    parsed: ParsedFile, options: ImportOptions, dataset: Source | SourceInfo | None, where: str
) -> tuple[Numbers, Numbers]:
    if (options.mean is None) != (options.std is None):
        raise BadOption("Pass `mean` and `std` together, one number per channel.")
    channels = parsed.images.shape[1]
    mean = options.mean or parsed.mean or (dataset.mean if dataset else ())
    std = options.std or parsed.std or (dataset.std if dataset else ())
    if len(mean) != channels or len(std) != channels:
        raise BadOption(f"{where} has {channels} channels, but `mean` has {len(mean)} numbers and `std` {len(std)}.")
    return mean, std


def _label_kind(parsed: ParsedFile, options: ImportOptions, where: str) -> LabelKind | None:
    """What the soft labels are, by the caller or by the file; None leaves it to their values."""
    if options.label_kind is None:
        return parsed.label_kind
    if parsed.soft_labels is None:
        raise BadOption(f"{where} has no soft labels; leave out `label_kind`.")
    if options.label_kind not in LABEL_KINDS:
        raise BadOption(f"`label_kind` must be {', '.join(LABEL_KINDS)}, not {options.label_kind!r}.")
    if options.label_kind == "probabilities" and infer_kind(parsed.soft_labels) != "probabilities":
        raise BadOption(
            f"The soft labels of {where} do not sum to one, so they are no probabilities; pass another `label_kind`."
        )
    return options.label_kind


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
    clipped = f"; {outside:.2%} of the values were outside 0…1 and were clipped" if outside else ""
    return to_uint8(images), [f"Rounded to 8 bits{clipped}."]


def _printable(name: str) -> str:
    """A file name as valid text, which names on disk need not be."""
    return name.encode("utf-8", "replace").decode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
