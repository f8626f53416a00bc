"""Budgets: how much of a set to keep, said in the words of whoever has to store, send or train on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from condense_once.errors import BadOption

UNITS = {"": 1, "b": 1} | {
    letter + ending: base**power
    for power, letter in enumerate("kmgt", 1)
    for ending, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


@dataclass(frozen=True)
class Budget:
    """How much to keep: one of `ipc`, `total`, `fraction` and `per_class`, narrowed down by `classes` and `bytes`.

    >>> Budget(ipc=1, total=40)
    Traceback (most recent call last):
    condense_once.errors.BadOption: A budget is either ipc or total, not both; give one of them.
    """

    ipc: int | None = None  # images per class: ipc · factor² patches in each
    total: int | None = None  # patches
    # of the patches (of the chosen classes), as the decimal it is written
    fraction: float | str | Fraction | None = None
    bytes: int | str | None = None  # the saved file is never larger; see `parse_bytes`
    classes: Sequence[str] | None = None  # only these; their labels keep their numbers …
    per_class: Mapping[str, int] | None = None  # patches of each class named, none of the others
    renumber: bool = False  # … unless asked: then the classes kept are 0, 1, …, in the order of the set

    def __post_init__(self) -> None:
        given = [name for name in ("ipc", "total", "fraction", "per_class") if getattr(self, name) is not None]
        if len(given) > 1:
            raise BadOption(f"A budget is either {given[0]} or {given[1]}, not both; give one of them.")
        if self.per_class is not None and self.classes is not None:
            raise BadOption("A budget is either per_class or classes, not both; per_class names its classes itself.")
        if self.renumber and self.per_class is None and self.classes is None:
            raise BadOption("Only a choice of classes can be re-numbered; name them with classes or per_class.")
        for name in ("ipc", "total"):
            _check_whole(name, getattr(self, name), least=1)
        if self.fraction is not None:
            exact_share(self.fraction)
        if self.bytes is not None:
            parse_bytes(self.bytes)
        if self.classes is not None:
            _check_names(self.classes)
        if self.per_class is not None:
            _check_counts(self.per_class)

    @property
    def cuts(self) -> bool:
        """Whether it keeps the best of something, which only a ranked set can tell; whole classes need no order."""
        return any(v is not None for v in (self.ipc, self.total, self.fraction, self.bytes, self.per_class))


def parse_bytes(size: int | str) -> int:
    """A number of bytes, perhaps written with a unit; parts of a byte are dropped.

    >>> parse_bytes("64KiB"), parse_bytes("1.5 MB"), parse_bytes(4096)
    (65536, 1500000, 4096)
    """
    found = re.fullmatch(r"(\d{1,30}(?:\.\d{1,30})?)\s*([a-z]*)", str(size).strip().lower(), re.ASCII)
    if found is None or found[2] not in UNITS:
        raise BadOption(f"A size in bytes is a number, or one with a unit such as 64KiB or 1.5MB, not {size!r}.")
    return int(Fraction(found[1]) * UNITS[found[2]])


def exact_share(fraction: float | str | Fraction) -> Fraction:
    """The fraction as it is written: 0.1 and 10% are a tenth, whatever their binary digits."""
    written = str(fraction).strip()
    try:
        share = Fraction(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise BadOption(f"A fraction lies above 0 and up to 1, such as 0.25 or 25%, not {fraction!r}.")
    return share


def _check_whole(what: str, value: object, *, least: int) -> None:
    if value is None:
        return
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise BadOption(f"A budget's {what} is a whole number from {least} up, not {value!r}.")


def _check_names(names: Sequence[str]) -> None:
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise BadOption(f"A budget's classes are a list of names, such as ['cat', 'dog'], not {names!r}.")
    if len(set(names)) != len(names):
        raise BadOption(f"A budget's classes must be different ones, not {', '.join(names)}.")


def _check_counts(counts: Mapping[str, int]) -> None:
    if not isinstance(counts, Mapping) or not all(isinstance(name, str) for name in counts):
        raise BadOption(f"A budget's per_class maps names of classes to patches, not {counts!r}.")
    for name, count in counts.items():
        _check_whole(f"per_class of {name!r}", count, least=0)
    if not any(counts.values()):
        raise BadOption("A budget's per_class keeps no patch at all; give at least one class more than 0.")
