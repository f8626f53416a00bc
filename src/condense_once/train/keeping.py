"""Where numbers that are recorded of every patch are kept: in memory, or in a folder when there may be millions."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from condense_once.errors import BadOption


def new_array(shape: tuple[int, ...], dtype: DTypeLike, folder: Path | None, name: str) -> NDArray[Any]:
    """An array of zeros, in memory or, with a folder, memory-mapped as `name.npy` in it.

    >>> new_array((2, 3), np.float32, None, "error").tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if folder is None:
        return np.zeros(shape, dtype)
    if not folder.is_dir():
        raise BadOption(f"The folder {folder} does not exist; make it first.")
    path = folder / f"{name}.npy"
    if path.exists():
        raise BadOption(f"{path} exists already; record in an empty folder.")
    needed, free = math.prod(shape) * np.dtype(dtype).itemsize, shutil.disk_usage(folder).free
    if needed > free:  # said now: on a full disk, writing to a mapped file kills the process
        raise BadOption(f"{path} would take {needed:,} bytes, but there are only {free:,} free; name another folder.")
    return np.lib.format.open_memmap(path, "w+", dtype, shape)
