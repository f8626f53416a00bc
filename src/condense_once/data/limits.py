"""How much memory a file may ask for. What headers declare is compared with it before anything is allocated or unpacked.

A compressed file can declare a thousand times its own size, so a small one may not take large memory: at most
`FREE_BYTES` plus `MAX_RATIO` times its size, and at most `MAX_BYTES`. A file that is stored as large as it is always opens.
`$CONDENSE_ONCE_MAX_MEMORY` (`8GiB`) sets another limit.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction

from condense_once.errors import BadFile, BadOption
from condense_once.text import human_bytes

MAX_BYTES = 4 << 30
FREE_BYTES = 256 << 20
MAX_RATIO = 100  # real image datasets compress by less than 10
VARIABLE = "CONDENSE_ONCE_MAX_MEMORY"

UNITS = {"": 1, "b": 1} | {
    letter + ending: base**power
    for power, letter in enumerate("kmgt", 1)
    for ending, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def parse_bytes(size: int | str) -> int:
    """A number of bytes, optionally with a unit; parts of a byte are dropped.

    >>> parse_bytes("64KiB"), parse_bytes("1.5 MB"), parse_bytes(4096)
    (65536, 1500000, 4096)
    """
    found = re.fullmatch(r"(\d{1,30}(?:\.\d{1,30})?)\s*([a-z]*)", str(size).strip().lower(), re.ASCII)
    if found is None or found[2] not in UNITS:
        raise BadOption(f"A size in bytes is a number, optionally with a unit (64KiB, 1.5MB), not {size!r}.")
    return int(Fraction(found[1]) * UNITS[found[2]])


def bytes_from_environment(variable: str, default: int) -> int:
    """The size in an environment variable, or the default if it is not set."""
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        return parse_bytes(text)
    except BadOption:
        raise BadOption(f"${variable} must be a size such as 8GiB, not {text!r}.") from None


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
