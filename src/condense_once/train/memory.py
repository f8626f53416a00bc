"""How this process's memory allocator treats freed memory; the choice of a program, not of a library."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_MAX = -1, -2, -4, -8  # from malloc.h
OPTIONS = ((M_MMAP_MAX, 0), (M_ARENA_MAX, 1), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 256 << 20))


@cache
def keep_freed_memory() -> None:
    """Keep freed memory in this process, where the C library is glibc and CONDENSE_ONCE_KEEP_MEMORY is not 0.

    By default glibc returns large blocks to the system, which zeroes their pages when they are allocated again: a tenth of
    the time of steps of 64 images of 32×32, and a quarter in threads other than the main one, which have their own heaps.
    So nothing is memory-mapped, all threads share one heap, and up to 2 GiB at its end are kept.
    """
    if sys.platform != "linux" or os.environ.get("CONDENSE_ONCE_KEEP_MEMORY") == "0":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in OPTIONS:
            mallopt(option, value)
