"""The class names of an imported set: from the file, from the caller, or from the dataset it was condensed from."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from condense_once.condensed.importers.format import ImportOptions, ParsedFile
from condense_once.data.source import Source, SourceInfo
from condense_once.errors import BadOption
from condense_once.text import comma_list, plural

Names = tuple[str, ...]


def name_classes(
    parsed: ParsedFile, options: ImportOptions, dataset: Source | SourceInfo | None, where: str
) -> tuple[Names, list[str]]:
    """A name for each label, and notes.

    Names of folders may be numbers or codes: `classes` renames them, and those of `dataset` replace numbers. Names that do
    not fit the dataset are refused, because test images are found by them.
    """
    if parsed.classes is None:
        return _of_numbers(parsed, options, dataset)
    if options.classes is not None:
        return _renamed(parsed, options.classes, where)
    if dataset is None or set(parsed.classes) <= set(dataset.classes):
        return parsed.classes, []
    numbers = class_numbers(parsed.classes)
    if numbers is None:
        odd = next(name for name in parsed.classes if name not in dataset.classes)
        raise BadOption(
            f"{where} has the class {odd!r}, which {dataset.name} does not have; pass its classes as `classes`, or `mean` and"
            " `std` instead of `dataset`."
        )
    if max(numbers) >= len(dataset.classes):
        raise BadOption(
            f"{where} numbers its {plural(len(numbers), 'class')} from {min(numbers)} to {max(numbers)}, but those of"
            f" {dataset.name} are 0 to {len(dataset.classes) - 1}; pass their names as `classes`."
        )
    return _by_number(parsed.classes, numbers, dataset.classes)


def class_numbers(names: Sequence[str]) -> list[int] | None:
    """The numbers in names that are numbers, or that differ only in a number at their end; otherwise None.

    >>> class_numbers(["new000", "new001", "new010"]), class_numbers(["7", "10"]), class_numbers(["cat", "dog2"])
    ([0, 1, 10], [7, 10], None)
    """
    parts = [re.fullmatch(r"(.*[^0-9]|)([0-9]{1,5})", name) for name in names]
    found = [part for part in parts if part]
    if len(found) < len(names) or len({part[1] for part in found}) > 1:
        return None
    numbers = [int(part[2]) for part in found]
    return numbers if len(set(numbers)) == len(numbers) else None


def _of_numbers(
    parsed: ParsedFile, options: ImportOptions, dataset: Source | SourceInfo | None
) -> tuple[Names, list[str]]:
    if options.classes is not None:
        return options.classes, []
    if dataset is not None:
        classes, there = dataset.classes, len(np.unique(parsed.labels))
        few = f"There are images of {there} of the {plural(len(classes), 'class')} of {dataset.name}; check `dataset`."
        return classes, [few] if there < len(classes) else []
    count = int(parsed.labels.max()) + 1 if parsed.soft_labels is None else parsed.soft_labels.shape[1]
    names = tuple(str(label) for label in range(count))
    return names, [f"Class names are unknown; the {count} classes are named by their numbers."]


def _renamed(parsed: ParsedFile, given: Names, where: str) -> tuple[Names, list[str]]:
    names = parsed.classes or ()
    if set(names) == set(given):
        return names, []
    numbers = class_numbers(names)
    if numbers is None and not parsed.renamable:
        raise BadOption(f"{where} has the classes {_short(names)}, not {_short(given)}; leave out `classes`.")
    if numbers is not None and max(numbers) < len(given):
        return _by_number(names, numbers, given)
    if len(names) != len(given) or set(names) & set(given):
        raise BadOption(
            f"{where} has {plural(len(names), 'class')} ({_short(names)}), which are not the {len(given)} of `classes`"
            f" ({_short(given)}); pass one name for each, in this order."
        )
    return given, [f"Classes are renamed in order: {_pairs(names, given)}."]


def _by_number(names: Names, numbers: Sequence[int], known: Names) -> tuple[Names, list[str]]:
    named = tuple(known[number] for number in numbers)
    return named, [f"Classes are named by their numbers: {_pairs(names, named)}."]


def _pairs(names: Names, named: Names) -> str:
    return _short([f"{old} is {new}" for old, new in zip(names, named, strict=True)])


def _short(names: Sequence[str]) -> str:
    return comma_list(names) if len(names) <= 4 else f"{comma_list(names[:3])} … {comma_list(names[-1:])}"
