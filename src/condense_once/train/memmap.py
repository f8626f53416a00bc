"""Where numbers that are recorded of every patch are kept: in memory, or in a folder when there may be millions."""

from __future__ import annotations

import errno
import math
import os
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
    _check_room(path, math.prod(shape) * np.dtype(dtype).itemsize)
    array: NDArray[Any] = np.lib.format.open_memmap(path, "w+", dtype, shape)
    _reserve(path)
    return array


def _check_room(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise BadOption(f"{path} would take {needed:,} bytes, but there are only {free:,} free; name another folder.")


def _reserve(path: Path) -> None:
    """Take the room of a file now: else it takes it page by page when written to, and on a full disk that kills the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    size = path.stat().st_size
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                return  # a file system that cannot reserve
            path.unlink()
            _check_room(path, size)
            raise BadOption(f"There is no room for {path} of {size:,} bytes; name another folder.") from None
