"""Memory: running out of it as one sentence, and how the allocator of a program treats what is freed."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from condense_once.errors import OutOfMemory

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_MAX = -1, -2, -4, -8  # from malloc.h
# How PyTorch's allocators say it: in a RuntimeError, or in a subclass that only some versions have.
NO_MEMORY = ("not enough memory", "out of memory", "allocate memory")
OPTIONS = ((M_MMAP_MAX, 0), (M_ARENA_MAX, 1), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 256 << 20))


def lacks_memory(error: MemoryError | RuntimeError) -> bool:
    """Whether an error is lack of memory.

    >>> lacks_memory(RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."))
    True
    """
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


@contextmanager
def memory_for(job: str, advice: str) -> Iterator[None]:
    """Raise lack of memory in the block as one sentence that says for what, and what to do about it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, OutOfMemory) or not lacks_memory(error):
            raise
        raise OutOfMemory(f"There is not enough memory to {job}; {advice}.") from error


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
