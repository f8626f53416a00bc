"""How much memory a file may ask for. What headers declare is compared with it before anything is allocated or unpacked.

A compressed file can declare a thousand times its own size, so a small one may not take large memory: at most
`FREE_BYTES` plus `MAX_RATIO` times its size, and at most `MAX_BYTES`. A file that is stored as large as it is always opens.
`$CONDENSE_ONCE_MAX_MEMORY` (`8GiB`) sets another limit.
"""

from __future__ import annotations

from condense_once.byte_sizes import bytes_from_environment
from condense_once.errors import BadFile
from condense_once.text import human_bytes

MAX_BYTES = 4 << 30
FREE_BYTES = 256 << 20
MAX_RATIO = 100  # real image datasets compress by less than 10
VARIABLE = "CONDENSE_ONCE_MAX_MEMORY"


def memory_limit(file_size: int) -> int:
    """The bytes that a file of this size may take once unpacked.

    >>> memory_limit(11 << 20) >> 20, memory_limit(6 << 30) >> 30
    (1356, 6)
    """
    return bytes_from_environment(VARIABLE, max(file_size, min(MAX_BYTES, FREE_BYTES + MAX_RATIO * file_size)))


def check_memory(needed: int, file_size: int, where: str) -> None:
    """Refuse `needed` bytes for the content of a file of `file_size` bytes, if that is above the limit."""
    if needed > (limit := memory_limit(file_size)):
        raise BadFile(
            f"{where} unpacks to {human_bytes(needed)}, more than the {human_bytes(limit)} that a file of"
            f" {human_bytes(file_size)} may take; if you trust it, set ${VARIABLE} to a larger size."
        )
