"""Plain arrays: `.npz` with `images` and `labels`, a pair of `.npy` files, or a pair of tensors in one `.pt` file.

An exported `.npz` is self-describing; any other leaves the rest to the caller.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.format import Extras, Format, ImportOptions, ParsedFile
from condense_once.condensed.importers.sniff import OpenedFiles, is_pair, to_numpy
from condense_once.condensed.set import Ranking
from condense_once.data.arrays import channels_first
from condense_once.errors import BadFile, CondenseOnceError

SCORES = "scores/"


def _recognises(opened: OpenedFiles) -> bool:
    if opened.kind == "npz":
        return len(opened.values) == 1 and {"images", "labels"} <= opened.values[0].keys()
    if opened.kind == "torch":
        return len(opened.values) == 1 and is_pair(opened.values[0], label_axes=1)
    return opened.kind == "npy" and sorted(value.ndim for value in opened.values) == [1, 4]


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    if opened.kind == "npz":
        try:
            return _described(opened.values[0], opened.names[0])
        except CondenseOnceError:
            raise
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            raise BadFile(f"{opened.names[0]} has an invalid description of itself ({error}).") from None
    values = tuple(opened.values[0]) if opened.kind == "torch" else opened.values
    main = 0 if values[0].ndim == 4 else 1
    images, labels = to_numpy(values[main], "images"), to_numpy(values[1 - main], "labels")
    return ParsedFile(channels_first(images, opened.names[0]), labels, main=main if len(opened.values) == 2 else 0)


def _described(arrays: dict[str, NDArray[Any]], where: str) -> ParsedFile:
    stored = {
        key: value.tolist() for key, value in arrays.items() if key in ("factor", "space", "classes", "mean", "std")
    }
    if not all(isinstance(stored.get(key, []), list) for key in ("classes", "mean", "std")):
        raise ValueError("classes, mean and std must be lists")
    zca = json.loads(arrays["zca"].item()) if "zca" in arrays else None
    if not isinstance(zca, dict | None):
        raise ValueError("zca must be an object")
    return ParsedFile(
        channels_first(to_numpy(arrays["images"], "images"), where),
        to_numpy(arrays["labels"], "labels"),
        soft_labels=to_numpy(arrays["soft_labels"], "soft labels") if "soft_labels" in arrays else None,
        factor=int(stored["factor"]) if "factor" in stored else None,
        space=stored.get("space"),
        classes=tuple(map(str, stored["classes"])) if "classes" in stored else None,
        mean=tuple(map(float, stored["mean"])) if "mean" in stored else None,
        std=tuple(map(float, stored["std"])) if "std" in stored else None,
        zca=zca,
        extras=_extras(arrays) if "origin" in arrays else None,
    )


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
    "arrays", ".npz with images and labels, a pair of .npy files, or a pair in a .pt file", _recognises, _read
)
