"""Budgets: how much of a set to keep, in images per class, patches, a fraction, bytes or classes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.byte_sizes import parse_bytes
from condense_once.errors import BadFile, BadOption
from condense_once.text import comma_list

MAX_DIGITS = 18  # of a count
COMMON = (1, 2, 5)  # … 10, 20, 50, 100, …


@dataclass(frozen=True)
class Budget:
    """How much to keep: at most one of `ipc`, `total`, `fraction` and `per_class`, limited further by `classes` and `bytes`.

    >>> Budget(ipc=1, total=40)
    Traceback (most recent call last):
    condense_once.errors.BadOption: A budget takes either `ipc` or `total`, not both; leave one of them out.
    >>> Budget.parse("30%") == Budget.parse("0.3") == Budget(fraction=0.3)
    True
    >>> str(Budget.parse("5")), str(Budget.parse("0.3")), str(Budget.parse("all"))
    ('5', '30 %', '100 %')
    """

    ipc: int | None = None  # images per class: ipc · factor² patches of each
    total: int | None = None  # patches
    # of the patches (of the chosen classes), stored as the exact decimal: 0.1 is a tenth
    fraction: float | str | Fraction | None = None
    bytes: int | str | None = None  # the saved file is never larger; see `parse_bytes`
    classes: Sequence[str] | None = None  # only these; labels stay as they are …
    per_class: Mapping[str, int] | None = None  # patches of each class named, none of the others
    renumber: bool = False  # … or become 0, 1, … for the classes that are kept, in the order of the set

    def __post_init__(self) -> None:
        given = [name for name in ("ipc", "total", "fraction", "per_class") if getattr(self, name) is not None]
        if len(given) > 1:
            raise BadOption(f"A budget takes either `{given[0]}` or `{given[1]}`, not both; leave one of them out.")
        if self.per_class is not None and self.classes is not None:
            raise BadOption("A budget takes either `per_class` or `classes`, not both; `per_class` names its classes.")
        if self.renumber and self.per_class is None and self.classes is None:
            raise BadOption("`renumber` applies to a choice of classes; name them with `classes` or `per_class`.")
        for name in ("ipc", "total"):
            _check_integer(f"`{name}`", getattr(self, name), minimum=1)
        if self.fraction is not None:
            object.__setattr__(self, "fraction", parse_fraction(self.fraction))
        if self.bytes is not None:
            object.__setattr__(self, "bytes", parse_bytes(self.bytes))
        if self.classes is not None:
            _check_names(self.classes)
            object.__setattr__(self, "classes", tuple(self.classes))
        if self.per_class is not None:
            _check_counts(self.per_class)

    @classmethod
    def parse(cls, text: str | int | float) -> Budget:
        """Read `5` as images per class, `30%` or `0.3` as a fraction, and `all` as everything; `str` writes it back."""
        written = str(text).strip()
        if written.isdecimal() and len(written) <= MAX_DIGITS and int(written) >= 1:
            return cls(ipc=int(written))
        try:
            fraction = parse_fraction("100%" if written == "all" else written)
        except BadOption:
            fraction = Fraction(0)
        if fraction == 0 or (
            fraction == 1 and written != "all" and not written.endswith("%")
        ):  # 1.0: one image, or all?
            raise BadOption(f"A size is images per class (5), a fraction (30% or 0.3) or all, not {written!r}.")
        return cls(fraction=fraction)

    @classmethod
    def of(cls, budget: Budget | str | int | float | None, **fields: Any) -> Budget:
        """The budget given as one, as text for `parse`, or by its fields."""
        given = {name: value for name, value in fields.items() if value is not None and value is not False}
        if budget is None:
            return cls(**given)
        if given:
            raise BadOption(f"Pass either `budget` or `{next(iter(given))}`, not both.")
        return budget if isinstance(budget, Budget) else cls.parse(budget)

    def __str__(self) -> str:
        if self == Budget(ipc=self.ipc) and self.ipc is not None:
            return f"{self.ipc}"
        if self == Budget(fraction=self.fraction) and self.fraction is not None:
            return percent(self.exact_fraction)
        return repr(self)

    @property
    def needs_ranking(self) -> bool:
        """Whether it keeps the best of something; whole classes need no order."""
        return any(v is not None for v in (self.ipc, self.total, self.fraction, self.bytes, self.per_class))

    @property
    def exact_fraction(self) -> Fraction:
        return Fraction(1) if self.fraction is None else Fraction(self.fraction)

    @property
    def max_bytes(self) -> int | None:
        return None if self.bytes is None else int(self.bytes)

    def patches(self, pool: int, *, classes: int, factor: int) -> int:
        """Patches asked for out of `pool` patches of so many classes, before any limit in bytes; fractions round down."""
        if self.ipc is not None:
            return int(self.ipc) * factor**2 * classes
        return int(self.exact_fraction * pool) if self.total is None else int(self.total)


def parse_fraction(fraction: float | str | Fraction) -> Fraction:
    """The fraction as it is written: 0.1 and 10% are a tenth, whatever their binary digits."""
    written = str(fraction).strip()
    number = written.removesuffix("%").strip()
    if not re.fullmatch(
        r"[\d./]{1,40}(e-?\d{1,2})?", number, re.ASCII | re.IGNORECASE
    ):  # 1e-999999999 takes all memory
        number = "0"
    try:
        exact = Fraction(number) / (100 if written.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if not 0 < exact <= 1:
        raise BadOption(f"A fraction is above 0 and at most 1, such as 0.25 or 25%, not {fraction!r}.")
    return exact


def percent(fraction: Fraction) -> str:
    """A fraction as `parse_fraction` reads it.

    >>> percent(Fraction(127, 1000)), percent(Fraction(1, 3))
    ('12.7 %', '1/3')
    """
    written = (f"{float(100 * fraction):{digits}} %" for digits in ("g", ".15g"))
    return next((text for text in written if parse_fraction(text) == fraction), str(fraction))


def read_counts(path: Path) -> dict[str, int]:
    """Patches per class from a JSON file, for `Budget.per_class`."""
    from condense_once.files import existing_file

    try:
        text = existing_file(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadFile(f"{path} is not JSON.") from None
    return parse_counts(text, str(path))


def parse_counts(text: str, where: str) -> dict[str, int]:
    """Patches per class from JSON.

    >>> parse_counts('{"cat": 3}', "an option")
    {'cat': 3}
    """

    def unique(pairs: list[tuple[str, int]]) -> dict[str, int]:
        if len(dict(pairs)) < len(pairs):
            raise BadFile(f"{where} names a class twice.")
        return dict(pairs)

    try:
        counts = json.loads(text, object_pairs_hook=unique)
    except BadFile:
        raise
    except (ValueError, RecursionError):
        raise BadFile(f"{where} is not JSON.") from None
    if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
        raise BadFile(f"{where} must map class names to integers.")
    return counts


def common_ipcs(below: float) -> Iterator[int]:
    """Common numbers of images per class, below that of a set.

    >>> list(common_ipcs(10)), list(common_ipcs(50))
    ([1, 2, 5], [1, 2, 5, 10, 20])
    """
    ten = 1
    while True:
        for step in COMMON:
            if step * ten >= below:
                return
            yield step * ten
        ten *= 10


def common_sizes(counts: NDArray[Any], factor: int, *, balanced: bool) -> Iterator[tuple[int, int]]:
    """Common sizes that a ranked set with these class counts can be resized to, as images per class and patches.

    >>> list(common_sizes(np.array([40, 40]), 2, balanced=True)), list(common_sizes(np.array([40, 12]), 2, balanced=True))
    ([(1, 8), (2, 16), (5, 40)], [(1, 8), (2, 16)])
    """
    there = counts[counts > 0] if balanced else counts
    per_image = factor**2 * len(there)  # patches of one image per class
    most = int(there.min()) / factor**2 if balanced else int(counts.sum()) / per_image
    return ((ipc, ipc * per_image) for ipc in common_ipcs(most))


def _check_integer(what: str, value: object, *, minimum: int) -> None:
    if value is None:
        return
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < minimum:
        raise BadOption(f"{what} of a budget must be an integer of at least {minimum}, not {value!r}.")


def _check_names(names: Sequence[str]) -> None:
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise BadOption(f"`classes` of a budget must be a list of names, such as ['cat', 'dog'], not {names!r}.")
    if len(set(names)) != len(names):
        raise BadOption(f"`classes` of a budget must be distinct, not {comma_list(names)}.")


def _check_counts(counts: Mapping[str, int]) -> None:
    if not isinstance(counts, Mapping) or not all(isinstance(name, str) for name in counts):
        raise BadOption(f"`per_class` of a budget must map class names to patches, not {counts!r}.")
    for name, count in counts.items():
        _check_integer(f"`per_class` {name!r}", count, minimum=0)
    if not any(counts.values()):
        raise BadOption("`per_class` of a budget keeps no patch at all; keep at least one.")
