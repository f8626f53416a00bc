"""Sizes in bytes, as people write them. Standard library only: devices read them, too."""

from __future__ import annotations

import os
import re
from fractions import Fraction

from condense_once.errors import BadOption

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
