"""Plain arrays: `.npz` with `images` and `labels`, or a pair of `.npy` files.

An `.npz` written by `condense-once export` says everything; any other leaves the rest to the caller.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.importers.content import Content, to_numpy
from condense_once.condensed.importers.format import Facts, Format, Found
from condense_once.errors import BadFile


def _recognises(content: Content) -> bool:
    if content.kind == "npz":
        return len(content.values) == 1 and {"images", "labels"} <= content.values[0].keys()
    return content.kind == "npy" and sorted(value.ndim for value in content.values) == [1, 4]


def _read(content: Content, facts: Facts) -> Found:
    if content.kind == "npy":
        labels, images = sorted(content.values, key=lambda value: value.ndim)
        return Found(_channels_first(to_numpy(images, "images")), to_numpy(labels, "labels"))
    arrays: dict[str, NDArray[Any]] = content.values[0]
    said = {key: arrays[key].tolist() for key in ("factor", "space", "classes", "mean", "std", "zca") if key in arrays}
    try:
        return Found(
            _channels_first(to_numpy(arrays["images"], "images")),
            to_numpy(arrays["labels"], "labels"),
            soft_labels=to_numpy(arrays["soft_labels"], "soft labels") if "soft_labels" in arrays else None,
            factor=int(said["factor"]) if "factor" in said else None,
            space=said.get("space"),
            classes=tuple(map(str, said["classes"])) if "classes" in said else None,
            mean=tuple(map(float, said["mean"])) if "mean" in said else None,
            std=tuple(map(float, said["std"])) if "std" in said else None,
            whitening=json.loads(said["zca"]) if "zca" in said else None,
        )
    except (TypeError, ValueError) as error:
        raise BadFile(f"{content.names[0]} describes itself in a way that makes no sense ({error}).") from None


def _channels_first(images: NDArray[Any]) -> NDArray[Any]:
    """`[n, ch, h, w]` from either layout; where both would do, nobody can know."""
    if images.ndim != 4:
        raise BadFile(f"Images must be [n, channels, height, width], not {list(images.shape)}.")
    first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
    if first == last:
        raise BadFile(
            f"Whether {list(images.shape)} has its channels first or last cannot be known; pass [n, ch, h, w]."
        )
    return images if first else np.ascontiguousarray(images.transpose(0, 3, 1, 2))


FORMAT = Format("arrays", ".npz with images and labels, or a pair of .npy files", _recognises, _read)
