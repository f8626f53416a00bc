"""The source that a condensed set is tested on: which one it is, and which of its classes are those of the set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.data.arrays import ValueRange
from condense_once.data.catalogue import SOURCES, recognise
from condense_once.data.open import open_source
from condense_once.data.source import Source, SourceInfo
from condense_once.data.wnids import class_words
from condense_once.errors import BadOption
from condense_once.progress import Progress


def open_test_source(
    data: CondensedSet,
    test: Source | str | Path,
    *,
    like: str | None = None,
    values: ValueRange | None = None,
    data_dir: Path | None = None,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> Source:
    """`test` itself, or the source with this name or path; image files in the size of the set."""
    if isinstance(test, Source):
        return test
    is_path = isinstance(test, str | PathLike) and test not in SOURCES
    resizable = is_path and (Path(test).is_dir() or Path(test).suffix in (".parquet", ".tar"))
    size = data.size[0] if resizable and data.size[0] == data.size[1] else None
    return open_source(test, data_dir=data_dir, size=size, like=like, values=values, progress=progress, notify=notify)


def known_source(data: CondensedSet) -> SourceInfo | None:
    """The known source with the classes of a set, or else the one in its provenance if it has them all."""
    recorded = recorded_source(data)
    fits = recorded is not None and set(class_words(data.classes)) <= set(recorded.classes)
    return recognise(data.classes, data.channels) or (recorded if fits else None)


def recorded_source(data: CondensedSet) -> SourceInfo | None:
    """The known source that a set was condensed from, or was imported with, as its provenance says."""
    imported = data.provenance.get("imported")
    name = data.provenance.get("source") or (imported.get("dataset") if isinstance(imported, Mapping) else None)
    name = str(name or "").partition(",")[0]
    return SOURCES.get(name) if name in SOURCES else None


def match_classes(data: CondensedSet, source: Source | SourceInfo) -> NDArray[np.int64]:
    """The number of each class of the source in the set, or −1: by name or by number, never by position.

    Classes that are only numbers in the set are those of the source with these numbers, if it has as many.
    """
    names, known = class_words(data.classes), class_words(source.classes)  # older files have ids
    numbers, known_numbers = _numbers(names), _numbers(known)
    if not set(names) <= set(known) and numbers is not None:
        if known_numbers is not None and set(numbers) <= set(known_numbers):  # 00, 01, … and 0, 1, …
            names, known = tuple(map(str, numbers)), tuple(map(str, known_numbers))
        elif len(names) == len(known) and not set(names) & set(known):
            if sorted(numbers) != list(range(len(numbers))):
                raise BadOption(
                    f"The classes of {data.name} are numbers, but not 0 to {len(numbers) - 1}, so they cannot be matched with"
                    f" those of {source.name}; import it with their names (`classes`)."
                )
            return np.argsort(numbers)
    if missing := [name for name in names if name not in known]:
        if known_numbers is not None:
            raise BadOption(
                f"The classes of {source.name} are only numbers, so they cannot be matched with those of {data.name}"
                f" ({missing[0]!r}, …); pass the known source with their names as `like`, or another `test`."
            )
        raise BadOption(f"{source.name} has no class {missing[0]!r}, which {data.name} has; pass another `test`.")
    places = {name: place for place, name in enumerate(names)}
    return np.array([places.get(name, -1) for name in known])


def _numbers(names: tuple[str, ...]) -> list[int] | None:
    """The names as numbers, if all are and no two are the same."""
    if not all(name.isdecimal() and len(name) < 10 for name in names):
        return None
    numbers = [int(name) for name in names]
    return numbers if len(set(numbers)) == len(numbers) else None
