"""Which rows of a ranked set a budget keeps.

A ranked set is stored best first, so a budget comes down to a count: the first rows of those that come into question. Whoever
has only a header and can read labels from the start (a file, a web server) gets the same rows as whoever has the set in
memory. Standard library and numpy only, because small devices choose their share themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget, exact_share, parse_bytes
from condense_once.condensed.file import SetFile, header_of, saved_size
from condense_once.condensed.header import Header
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadFile, BadOption, UnknownName
from condense_once.select.order import turns

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Stock:
    """What a budget chooses from: the facts of a set, and its labels as far as they are asked for."""

    header: Header  # its checksums have no part in this
    metrics: tuple[str, ...]  # whose scores are stored with the patches
    labels: Callable[[int], NDArray[Any]]  # the first so many, in stored order
    called: str | None = None  # how its user calls it, if not by its own name

    @classmethod
    def in_memory(cls, data: CondensedSet) -> Stock:
        return cls(header_of(data), tuple(data.scores), lambda stop: data.labels[:stop])

    @classmethod
    def on_file(cls, file: SetFile, called: str | None = None) -> Stock:
        return cls(file.header, file.metrics, lambda stop: file.rows("labels", stop), called)

    @property
    def name(self) -> str:
        return self.called or self.header.name

    @property
    def balanced(self) -> bool:
        return self.header.ranking is not None and self.header.ranking.balanced

    def size(self, patches: int, classes: tuple[str, ...]) -> int:
        """Bytes of the file of so many patches."""
        part = replace(self.header, patches=patches, classes=classes)
        if patches < self.header.patches:
            part = replace(part, provenance=told_of_a_part(self.header.provenance, self.header.patches))
        return saved_size(part, self.metrics)

    def fitting(self, count: int, limit: int | str | None, classes: tuple[str, ...]) -> int:
        """How many of `count` patches of these classes make a file within the limit, perhaps 0.

        Sizes grow with the count but for a step down of 16 KiB where the checksums' blocks double, at 16 MiB, 32 MiB, …;
        a limit within such a step may give a little less than the most, never more.
        """
        if limit is None:
            return count
        most, low, high = parse_bytes(limit), 0, count + 1
        middle = count  # most often everything fits
        while high - low > 1:
            low, high = (middle, high) if self.size(middle, classes) <= most else (low, middle)
            middle = (low + high) // 2
        return low


@dataclass(frozen=True)
class Selection:
    """The rows that a budget keeps."""

    rows: NDArray[np.int64]  # [k] ascending, so in stored order
    whole: int  # how many there were to choose from
    labels: Labels  # [k] with their new numbers, if classes are re-numbered
    classes: tuple[str, ...]
    kept: Labels | None = None  # the old number of each class, if they are re-numbered
    notes: tuple[str, ...] = ()  # what the user should know, as sentences

    @property
    def stop(self) -> int:
        """How many rows have to be read to have all of them."""
        return int(self.rows[-1]) + 1

    @property
    def prefix(self) -> int | None:
        """Their number, if they are the very first of the set."""
        return self.stop if self.stop == len(self.rows) else None

    def of(self, data: CondensedSet) -> CondensedSet:
        """The chosen part of a set, of which at least the first `stop` rows must be there."""
        part = self.renumber(data.take(self.rows if self.prefix is None else slice(self.prefix)))
        if len(part) == self.whole:
            return part
        return replace(part, provenance=told_of_a_part(part.provenance, self.whole))

    def renumber(self, part: CondensedSet) -> CondensedSet:
        """The same patches with the classes of this choice."""
        if self.kept is None:
            return part
        soft = None if part.soft_labels is None else part.soft_labels[:, self.kept]
        labels = np.searchsorted(self.kept, part.labels)
        return replace(part, labels=labels, classes=self.classes, soft_labels=soft)


def told_of_a_part(told: Mapping[str, Any], patches: int) -> dict[str, Any]:
    """What is told of a set of so many patches, as far as it is true of a part of it; and that it is one.

    >>> told_of_a_part({"method": "idc", "accuracy": [60.4]}, 400)
    {'method': 'idc', 'kept': {'of': 400}}
    """
    before = told.get("kept")
    still = {name: value for name, value in told.items() if name not in ("accuracy", "kept")}
    return {**still, "kept": {"of": patches, **(before if isinstance(before, Mapping) else {})}}


def resize(data: CondensedSet, budget: Budget) -> CondensedSet:
    """The part of a ranked set that a budget keeps, in stored order."""
    return choose(budget, Stock.in_memory(data)).of(data)


def choose(budget: Budget, stock: Stock) -> Selection:
    """The rows that a budget keeps. A smaller budget of the same kind keeps a part of them.

    In a balanced ranking the classes take turns, in class order; in another one the best go first whatever their class.
    """
    header = stock.header
    if budget.cuts:
        require_ranking(header, stock.name)
    first = _first_rows(budget, stock)
    return _any_rows(budget, stock) if first is None else first


def require_ranking(header: Header, name: str) -> None:
    if header.ranking is None:
        raise BadOption(
            f"{name} is not ranked, so its best part is not known; rank it first (condense-once rank), or choose by a rule"
            " (condense-once resize --rule yoco)."
        )


def _first_rows(budget: Budget, stock: Stock) -> Selection | None:
    """The choice, if it is plain to see from the first rows alone; these are then all that is ever read."""
    header, classes = stock.header, len(stock.header.classes)
    if budget.classes is not None or budget.per_class is not None:
        return None
    wanted = _wanted(budget, header, header.patches, classes)
    if not 0 < wanted <= header.patches:
        return None
    count = stock.fitting(wanted, budget.bytes, header.classes)
    labels = stock.labels(min(count + 1, wanted)).astype(np.int64)  # with the first one that is left out, if any is
    if stock.balanced and (labels != np.arange(len(labels)) % classes).any():
        return None  # some classes are smaller than others: only all labels can tell
    if stock.balanced and count < wanted:
        count -= count % classes  # whole turns only
        while stock.fitting(count, budget.bytes, header.classes) < count:  # a file with fewer patches may be larger
            count -= classes
    if not count:
        return None
    labels = labels[:count]
    notes = _notes(budget, stock, wanted, header.patches, np.bincount(labels, minlength=classes))
    return Selection(np.arange(count), header.patches, labels, header.classes, None, notes)


def _any_rows(budget: Budget, stock: Stock) -> Selection:
    header = stock.header
    labels = stock.labels(header.patches).astype(np.int64)
    sizes = np.bincount(labels, minlength=len(header.classes))  # [C]
    if len(sizes) > len(header.classes):
        raise BadFile(f"{stock.name} has labels up to {len(sizes) - 1}, but only {len(header.classes)} classes.")
    ids = _class_ids(budget, stock, sizes)
    pool = np.flatnonzero(np.isin(labels, ids))
    before = turns(labels)[pool]  # how many of its class go before
    if stock.balanced:
        order = np.lexsort((labels[pool], before))
        pool, before = pool[order], before[order]
    if budget.per_class is not None:
        counts = np.zeros_like(sizes)
        counts[ids] = [budget.per_class[header.classes[k]] for k in ids]
        chosen = before < counts[labels[pool]]
        pool, before = pool[chosen], before[chosen]
    # Without balance the best patches may lack a class, which counts all the same: else resizing twice would be another thing
    counted = ids if stock.balanced or budget.classes is not None else header.classes
    wanted = _wanted(budget, header, len(pool), len(counted))
    _check_supply(budget, stock, wanted, len(pool), sizes[ids])
    classes = tuple(header.classes[k] for k in ids) if budget.renumber else header.classes
    count = stock.fitting(wanted, budget.bytes, classes)
    if count < wanted and budget.per_class is not None:
        size = stock.size(wanted, classes)
        raise BadOption(
            f"The {wanted} patches that per_class asks for make a file of {size:,} bytes, which is too large."
        )
    if count < wanted and stock.balanced:
        count = int((before < before[count]).sum())  # whole turns only
        while stock.fitting(count, budget.bytes, classes) < count:  # a file with fewer patches may be larger
            count = int((before < before[count - 1]).sum())
    if not count:
        least = stock.size(len(ids) if stock.balanced else 1, classes)
        raise BadOption(f"The smallest part of {stock.name} makes a file of {least:,} bytes; allow at least these.")
    rows = np.sort(pool[:count])
    notes = _notes(budget, stock, wanted, len(pool), np.bincount(labels[rows], minlength=len(sizes))[ids])
    if not budget.renumber:
        return Selection(rows, header.patches, labels[rows], classes, None, notes)
    return Selection(rows, header.patches, np.searchsorted(ids, labels[rows]), classes, ids, notes)


def _wanted(budget: Budget, header: Header, pool: int, classes: int) -> int:
    """Patches that a budget asks for, out of a pool of so many in so many classes."""
    if budget.ipc is not None:
        return int(budget.ipc) * header.factor**2 * classes
    if budget.total is not None:
        return int(budget.total)
    return pool if budget.fraction is None else int(exact_share(budget.fraction) * pool)


def _check_supply(budget: Budget, stock: Stock, wanted: int, pool: int, sizes: NDArray[Any]) -> None:
    name, cells = stock.name, stock.header.factor**2
    if budget.ipc is not None and stock.balanced and budget.ipc * cells > sizes.min():
        images = "1 image" if sizes.min() // cells == 1 else f"{sizes.min() // cells} images"
        raise BadOption(
            f"{name} holds {images} per class (its smallest class has {sizes.min()} patches);"
            f" {budget.ipc} cannot be taken from it."
        )
    if wanted > pool:
        raise BadOption(f"{name} holds {pool} patches to choose from; {wanted} cannot be taken from it.")
    if not wanted:
        raise BadOption(f"A fraction of {budget.fraction} keeps none of the {pool} patches of {name}; ask for more.")


def _class_ids(budget: Budget, stock: Stock, sizes: NDArray[Any]) -> Labels:
    """The classes to choose from: those named, or those that have patches."""
    header = stock.header
    if budget.classes is None and budget.per_class is None:
        return np.flatnonzero(sizes)
    named = budget.classes or [name for name, count in (budget.per_class or {}).items() if count]
    for name in [*named, *(budget.per_class or ())]:
        if name not in header.classes:
            from condense_once.registry import nearest  # slow to import, so only for those who need advice

            raise UnknownName(f"There is no class {name!r} in {stock.name}; {nearest(name, header.classes)}")
    ids = np.sort([header.classes.index(name) for name in named])
    for k in ids:
        asked = 1 if budget.per_class is None else budget.per_class[header.classes[k]]
        if sizes[k] < asked:
            raise BadOption(f"{stock.name} holds {sizes[k]} patches of class {header.classes[k]!r}, not {asked}.")
    return ids


def _notes(budget: Budget, stock: Stock, wanted: int, pool: int, counts: NDArray[Any]) -> tuple[str, ...]:
    """What a budget did not say, but brought about; `counts` are the patches kept of each class in question."""
    notes, kept = [], int(counts.sum())
    if kept < wanted and budget.bytes is not None and (budget.ipc or budget.total or budget.fraction):
        notes.append(f"Only {kept} of the {wanted} patches asked for fit in {parse_bytes(budget.bytes):,} bytes.")
    if budget.ipc is not None and not stock.balanced:
        notes.append(f"The ranking is not balanced: the best {kept} patches are kept, whatever their class.")
    if stock.balanced and budget.per_class is None and kept < pool and counts.min() < counts.max():
        more = f"most of a class is {counts.max()}, least {counts.min()}"
        if counts.max() - counts.min() > 1:
            notes.append(f"Some classes have no more patches, so that others make up for them: {more}.")
        else:
            notes.append(
                f"{kept} patches do not divide evenly, so they are spread one per class, in class order: {more}."
            )
    return tuple(notes)
