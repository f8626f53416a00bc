"""Arrays of per-patch records: in memory, or memory-mapped in a folder when there may be millions."""

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
        raise BadOption(f"The folder {folder} does not exist; create it first.")
    path = folder / f"{name}.npy"
    if path.exists():
        raise BadOption(f"{path} already exists; record in an empty folder.")
    _check_free_space(path, math.prod(shape) * np.dtype(dtype).itemsize)
    array: NDArray[Any] = np.lib.format.open_memmap(path, "w+", dtype, shape)
    _reserve(path)
    return array


def _check_free_space(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise BadOption(f"{path} takes {needed:,} bytes, but only {free:,} are free; choose another folder.")


def _reserve(path: Path) -> None:
    """Allocate the file's disk space now: a full disk would kill the process on a later write to the mapped file."""
    if not hasattr(os, "posix_fallocate"):
        return
    size = path.stat().st_size
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                return  # the file system cannot reserve space
            path.unlink()
            _check_free_space(path, size)
            raise BadOption(
                f"There is no disk space for the {size:,} bytes of {path}; choose another folder."
            ) from None
