"""Plain arrays: an `.npz` or a `.pt` dict with `images` and `labels`, a list or pair in a `.pt`, or a pair of `.npy` files.

An exported `.npz` is self-describing; any other leaves the rest to the caller.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.format import Extras, Format, ImportOptions, ParsedFile, Question
from condense_once.condensed.importers.labels import read_labels
from condense_once.condensed.importers.sniff import OpenedFiles, is_pair, summarise, to_numpy
from condense_once.condensed.set import Ranking
from condense_once.condensed.soft_labels import LABEL_KINDS, LabelKind
from condense_once.data.arrays import channels_first
from condense_once.data.torch_file import StoredTensor
from condense_once.errors import BadFile, BadOption, CondenseOnceError
from condense_once.text import first_line, readable

IMAGES, LABELS = "images", "labels"
SCORES = "scores/"


def _recognises(opened: OpenedFiles) -> bool:
    if len(opened.values) == 2:
        pairs = (opened.values, opened.values[::-1])
        return opened.kind == "npy" and any(is_pair(pair, label_axes=axes) for pair in pairs for axes in (1, 2))
    (value,) = opened.values
    if isinstance(value, dict):
        return IMAGES in value or any(map(_may_be_images, value.values()))
    return opened.kind == "torch" and _in_list(value) is not None


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    value, where = opened.values[0], opened.names[0]
    if len(opened.values) == 1 and isinstance(value, dict):
        return _from_names(value, options, where, described=opened.kind == "npz")
    if options.images or options.labels:
        raise BadOption(f"The arrays of {where} have no names; leave out `images` and `labels`.")
    if len(opened.values) == 1:
        pair, main = _in_list(value) or (value, value), 0
    else:
        main = 0 if value.ndim == 4 else 1
        pair = (opened.values[main], opened.values[1 - main])
    return replace(_from_pair(*pair, where), main=main)


def _from_pair(images: Any, labels: Any, where: str) -> ParsedFile:
    read = read_labels(labels)
    return ParsedFile(
        channels_first(to_numpy(images, "images"), where), read.hard, soft_labels=read.soft, notes=read.notes
    )


def _in_list(value: object) -> tuple[Any, Any] | None:
    """Images and labels of a list: the pair itself, lists of images and of labels, or a pair for each image."""
    if not isinstance(value, list | tuple) or not value:
        return None
    if len(value) == 2 and _may_be_images(value[0]) and _may_be_labels(value[1]):
        return value[0], value[1]
    if all(isinstance(one, list | tuple) and len(one) == 2 and getattr(one[0], "ndim", 0) == 3 for one in value):
        labels = [
            one[1].read().item() if isinstance(one[1], StoredTensor) and not one[1].ndim else one[1] for one in value
        ]
        return [one[0] for one in value], labels
    return None


def _may_be_images(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(getattr(one, "ndim", 0) == 3 for one in value)
    return getattr(value, "ndim", 0) == 4


def _may_be_labels(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(type(one) in (int, float) or getattr(one, "ndim", 9) < 2 for one in value)
    return getattr(value, "ndim", 0) in (1, 2)


def _from_names(values: dict[Any, Any], options: ImportOptions, where: str, *, described: bool) -> ParsedFile:
    keys = {"images": options.images or IMAGES, "labels": options.labels or LABELS}
    for option, key in keys.items():
        if getattr(options, option) is not None and key not in values:
            raise BadOption(f"{where} holds {summarise(values)}, but no {key!r}; pass another `{option}`.")
    if any(key not in values for key in keys.values()):
        first = next((value for value in values.values() if _may_be_images(value)), None)
        if first is None:
            raise BadFile(f"{where} holds no images and labels, but {summarise(values)}.")
        ask = Question("`images` and `labels`", f"holds {summarise(values)}", ", the names of its images and labels")
        images = to_numpy(first, "images")
        return ParsedFile(images, np.zeros(len(images), np.int64), questions=(ask,))
    pair = _from_pair(values[keys["images"]], values[keys["labels"]], where)
    try:
        return _described(pair, values) if described else pair
    except CondenseOnceError:
        raise
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise BadFile(f"{where} has an invalid description of itself ({readable(first_line(error))}).") from None


def _described(pair: ParsedFile, arrays: dict[str, NDArray[Any]]) -> ParsedFile:
    """With what an exported set says of itself."""
    stored = {
        key: value.tolist() for key, value in arrays.items() if key in ("factor", "space", "classes", "mean", "std")
    }
    if not all(isinstance(stored.get(key, []), list) for key in ("classes", "mean", "std")):
        raise ValueError("classes, mean and std must be lists")
    zca = json.loads(arrays["zca"].item()) if "zca" in arrays else None
    if not isinstance(zca, dict | None):
        raise ValueError("zca must be an object")
    soft = to_numpy(arrays["soft_labels"], "soft labels") if "soft_labels" in arrays else pair.soft_labels
    return replace(
        pair,
        soft_labels=soft,
        label_kind=_label_kind(arrays) if soft is not None else None,
        factor=int(stored["factor"]) if "factor" in stored else None,
        space=stored.get("space"),
        classes=tuple(map(str, stored["classes"])) if "classes" in stored else None,
        mean=tuple(map(float, stored["mean"])) if "mean" in stored else None,
        std=tuple(map(float, stored["std"])) if "std" in stored else None,
        zca=zca,
        extras=_extras(arrays) if "origin" in arrays else None,
    )


def _label_kind(arrays: dict[str, NDArray[Any]]) -> LabelKind | None:
    kind = arrays["label_kind"].item() if "label_kind" in arrays else None
    if kind not in (None, *LABEL_KINDS):
        raise ValueError(f"soft labels are {', '.join(LABEL_KINDS)}, not {kind!r}")
    return cast("LabelKind | None", kind)


def _extras(arrays: dict[str, NDArray[Any]]) -> Extras:
    ranking = json.loads(arrays["ranking"].item()) if "ranking" in arrays else None
    return Extras(
        origin=to_numpy(arrays["origin"], "origins").astype(np.int64),
        scores={
            key.removeprefix(SCORES): to_numpy(values, key).astype(np.float32)
            for key, values in arrays.items()
            if key.startswith(SCORES)
        },
        ranking=None if ranking is None else Ranking(**ranking),
    )


FORMAT = Format(
    "arrays",
    "images and labels in an .npz, a .pt file (dict, list or pair) or a pair of .npy files",
    _recognises,
    _read,
    frozenset({"images", "labels"}),
)
