"""Plain arrays: `.npz` with `images` and `labels`, a pair of `.npy` files, or a pair of tensors in one `.pt` file.

An `.npz` written by `condense-once export` says everything; any other leaves the rest to the caller.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.format import Extras, Format, ImportOptions, ParsedFile
from condense_once.condensed.importers.sniff import Content, is_pair, to_numpy
from condense_once.condensed.set import Ranking
from condense_once.data.arrays import channels_first
from condense_once.errors import BadFile

SCORES = "scores/"


def _recognises(content: Content) -> bool:
    if content.kind == "npz":
        return len(content.values) == 1 and {"images", "labels"} <= content.values[0].keys()
    if content.kind == "torch":
        return len(content.values) == 1 and is_pair(content.values[0], label_axes=1)
    return content.kind == "npy" and sorted(value.ndim for value in content.values) == [1, 4]


def _read(content: Content, facts: ImportOptions) -> ParsedFile:
    if content.kind == "npz":
        try:
            return _described(content.values[0], content.names[0])
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            raise BadFile(f"{content.names[0]} describes itself in a way that makes no sense ({error}).") from None
    values = tuple(content.values[0]) if content.kind == "torch" else content.values
    main = 0 if values[0].ndim == 4 else 1
    images, labels = to_numpy(values[main], "images"), to_numpy(values[1 - main], "labels")
    return ParsedFile(channels_first(images, content.names[0]), labels, main=main if len(content.values) == 2 else 0)


def _described(arrays: dict[str, NDArray[Any]], where: str) -> ParsedFile:
    said = {
        key: value.tolist() for key, value in arrays.items() if key in ("factor", "space", "classes", "mean", "std")
    }
    if not all(isinstance(said.get(key, []), list) for key in ("classes", "mean", "std")):
        raise ValueError("classes, mean and std must be lists")
    whitening = json.loads(arrays["zca"].item()) if "zca" in arrays else None
    if not isinstance(whitening, dict | None):
        raise ValueError("zca must be an object")
    return ParsedFile(
        channels_first(to_numpy(arrays["images"], "images"), where),
        to_numpy(arrays["labels"], "labels"),
        soft_labels=to_numpy(arrays["soft_labels"], "soft labels") if "soft_labels" in arrays else None,
        factor=int(said["factor"]) if "factor" in said else None,
        space=said.get("space"),
        classes=tuple(map(str, said["classes"])) if "classes" in said else None,
        mean=tuple(map(float, said["mean"])) if "mean" in said else None,
        std=tuple(map(float, said["std"])) if "std" in said else None,
        zca=whitening,
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
