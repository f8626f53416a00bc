"""A run on disk: what it needs to go on, complete or not at all, and nothing in it that could be executed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.container import MappedFile, parse_json, raw_bytes, read_index, write_container
from condense_once.errors import BadFile
from condense_once.files import atomic_file

KEY = "condense_once.checkpoint"
SUM = "condense_once.crc32"  # of the text
STEPS, LOSSES = "curve/steps", "curve/losses"  # the curve grows with the run, so it is no text
VERSION = 2


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is, what was asked for, and the arrays of its loop."""

    request: Mapping[str, Any]  # what the user asked for: it belongs to this alone
    recipe: Mapping[str, Any]  # what came of it, for a recipe may be fitted to the time given
    done: int
    seconds: float
    curve: list[tuple[int, float]]  # steps done, loss in single precision
    losses: list[float]  # of the classes that have had their turn in a step that is not done
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)

    def save(self, path: Path) -> None:
        """Write it in place of the one before."""
        steps, losses = zip(*self.curve, strict=True) if self.curve else ((), ())
        arrays = {**self.arrays, STEPS: np.array(steps, np.uint32), LOSSES: np.array(losses, np.float32)}
        text = {name: value for name, value in vars(self).items() if name not in ("arrays", "curve")}
        sums = {name: f"{zlib.crc32(raw_bytes(array)):08x}" for name, array in arrays.items()}
        content = json.dumps({"version": VERSION, **text, "crc32": sums}, allow_nan=False)
        with atomic_file(path, force=True) as out:
            write_container(out, _widest_first(arrays), {KEY: content, SUM: f"{zlib.crc32(content.encode()):08x}"})


def load_checkpoint(path: Path) -> Checkpoint:
    """Read and check a checkpoint; a damaged one is refused in a sentence."""
    file = MappedFile(path)
    index = read_index(file)
    if KEY not in index.metadata:
        raise BadFile(f"{path} is not a checkpoint of condense-once.")
    if f"{zlib.crc32(index.metadata[KEY].encode()):08x}" != index.metadata.get(SUM):
        raise BadFile(f"{path} is damaged, or was written by an older version: its text does not match its checksum.")
    content = parse_json(index.metadata[KEY], str(path))
    try:
        if content["version"] != VERSION:
            raise BadFile(f"{path} has checkpoint version {content['version']!r}, this program reads {VERSION}.")
        arrays = {
            name: np.frombuffer(file.read(spec.start, spec.stop), spec.dtype).reshape(spec.shape)
            for name, spec in index.tensors.items()
        }
        for name, array in arrays.items():
            if f"{zlib.crc32(raw_bytes(array)):08x}" != content["crc32"][name]:
                raise BadFile(f"{path} is damaged: {name!r} does not match its checksum.")
        steps, found = arrays.pop(STEPS), arrays.pop(LOSSES)
        return Checkpoint(
            request=dict(content["request"]),
            recipe=dict(content["recipe"]),
            done=int(content["done"]),
            seconds=float(content["seconds"]),
            curve=list(zip(steps.tolist(), found.tolist(), strict=True)),
            losses=[float(loss) for loss in content["losses"]],
            arrays=arrays,
        )
    except BadFile:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{path} is damaged: its description makes no sense ({error}).") from None


def _widest_first(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """So that every array is aligned."""
    return dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))
