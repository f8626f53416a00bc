"""Which rows of a ranked set a budget keeps.

A ranked set is stored best first, so a budget comes down to a count: the first eligible rows. A reader that has only the header
and can read labels from the start (a file, a web server) finds the same rows as one with the whole set in memory. Standard
library and numpy only, because small devices choose their own subset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget, percent
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.set_view import SetView
from condense_once.condensed.soft_labels import of_classes
from condense_once.condensed.stored_dtype import StoredDtype
from condense_once.errors import BadFile, BadOption, UnknownName
from condense_once.text import plural

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Subset:
    """The rows that a budget keeps."""

    rows: NDArray[np.int64]  # [k] ascending, so in stored order
    total: int  # patches of the whole set
    labels: Labels  # [k] after renumbering, if any
    classes: tuple[str, ...]
    class_ids: Labels | None = None  # the old label of each class, if they are renumbered
    notes: tuple[str, ...] = ()  # consequences of the budget that the user should know, as sentences

    @property
    def stop(self) -> int:
        """How many rows have to be read to get all of them."""
        return int(self.rows[-1]) + 1

    @property
    def prefix(self) -> int | None:
        """Their number, if they are a prefix of the set."""
        return self.stop if self.stop == len(self.rows) else None

    def take_from(self, data: CondensedSet) -> CondensedSet:
        """These rows of a set, of which at least the first `stop` must be there."""
        part = self.renumber(data.take(self.rows if self.prefix is None else slice(self.prefix)))
        return part.as_subset_of(self.total)

    def renumber(self, part: CondensedSet) -> CondensedSet:
        """The same patches with the labels and classes of this subset."""
        if self.class_ids is None:
            return part
        labels = np.searchsorted(self.class_ids, part.labels)
        if part.soft_labels is None or part.label_kind is None:
            return replace(part, labels=labels, classes=self.classes)
        coding = LabelCoding.parse(part.label_coding).for_classes(len(self.classes))
        soft = coding.rounded(of_classes(part.soft_labels, part.label_kind, self.class_ids))
        return replace(part, labels=labels, classes=self.classes, soft_labels=soft, label_coding=str(coding))


def resize(
    data: CondensedSet | str | Path,
    budget: Budget | str | int | float | None = None,
    *,
    ipc: int | None = None,
    total: int | None = None,
    fraction: float | str | Fraction | None = None,
    bytes: int | str | None = None,  # noqa: A002 (the field of `Budget`)
    classes: Sequence[str] | None = None,
    per_class: Mapping[str, int] | None = None,
    renumber: bool = False,
    dtype: StoredDtype | None = None,
    label_coding: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> CondensedSet:
    """The part of a ranked set that a budget keeps, in stored order; nothing is trained.

    `data` is a set, a path or the name of a bundled set. The budget is a `Budget`, its text, or its fields. `dtype` stores the
    cells of a normalised or whitened set in 16 bits (float16), `label_coding` its soft labels in fewer bits: float16, uint8, or
    only the largest of every row (top8). `notify` receives what the budget implied, such as fewer patches
    than asked for, as sentences.

    >>> resize("cifar10-idc-ipc10", ipc=1).counts().tolist()
    [4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    amounts = {"ipc": ipc, "total": total, "fraction": fraction, "bytes": bytes}
    budget = Budget.of(budget, **amounts, classes=classes, per_class=per_class, renumber=renumber)
    view = SetView.of(data) if dtype is None else SetView.of(data).stored_as(dtype)
    view = view if label_coding is None else view.labels_stored_as(label_coding)
    subset = choose_subset(view, budget)
    if notify is not None:
        for note in subset.notes:
            notify(note)
    return subset.take_from(view.read(subset.stop))


def choose_subset(view: SetView, budget: Budget) -> Subset:
    """The rows that a budget keeps. A smaller budget of the same kind keeps a part of them.

    In a balanced ranking the classes take turns, in class order; in any other the best come first, whatever their class.
    """
    if budget.needs_ranking:
        require_ranking(view.header.ranking, view.name)
    prefix = _prefix(view, budget)
    return _any_rows(view, budget) if prefix is None else prefix


def count_patches(data: CondensedSet, budget: Budget) -> int:
    """How many patches of a set a budget keeps, whatever the order: at least one, at most all."""
    count = budget.patches(len(data), classes=len(data.classes), factor=data.factor)
    _check_count(budget, count, len(data), data.name)
    return count


def require_ranking(ranking: Ranking | None, name: str) -> None:
    if ranking is None:
        raise BadOption(f"{name} is not ranked, so its best patches are unknown; rank it first, or select by a rule.")


def rank_within_class(labels: NDArray[Any]) -> NDArray[np.int64]:
    """For every row, how many rows before it have the same label.

    >>> rank_within_class(np.array([1, 0, 1, 1, 0])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    before = np.empty(len(labels), np.int64)
    before[order] = np.arange(len(labels)) - np.concatenate([[0], ends])[labels[order]]
    return before


def balanced_counts(labels: NDArray[Any], count: int, classes: int) -> NDArray[np.int64]:
    """How many patches of each class make `count` in balance, `[C]`: one per class in turn, until it has no more.

    >>> balanced_counts(np.array([0, 0, 0, 1, 2, 2]), 5, classes=3).tolist()
    [2, 1, 2]
    """
    taken = np.lexsort((labels, rank_within_class(labels)))[:count]
    return np.bincount(labels[taken], minlength=classes)


def _prefix(view: SetView, budget: Budget) -> Subset | None:
    """The subset, if the first rows alone decide it; no others are read then."""
    header, classes, limit = view.header, len(view.header.classes), budget.max_bytes
    if budget.classes is not None or budget.per_class is not None:
        return None
    wanted = budget.patches(header.patches, classes=classes, factor=header.factor)
    if not 0 < wanted <= header.patches:
        return None
    fits = count = view.fitting(wanted, limit, header.classes)
    labels = view.labels(min(count + 1, wanted)).astype(np.int64)  # with the first one that is left out, if any
    if view.balanced and (labels != np.arange(len(labels)) % classes).any():
        return None  # classes of different sizes: only all labels can tell
    if view.balanced and count < wanted:
        count -= count % classes  # whole rounds only
        while view.fitting(count, limit, header.classes) < count:  # a file with fewer patches may be larger
            count -= classes
    if not count:
        return None
    labels = labels[:count]
    notes = _notes(view, budget, wanted, fits, header.patches, np.bincount(labels, minlength=classes))
    return Subset(np.arange(count), header.patches, labels, header.classes, None, notes)


def _any_rows(view: SetView, budget: Budget) -> Subset:
    header, limit = view.header, budget.max_bytes
    labels = view.labels(header.patches).astype(np.int64)
    sizes = np.bincount(labels, minlength=len(header.classes))  # [C]
    if len(sizes) > len(header.classes):
        raise BadFile(
            f"{view.name} has labels up to {len(sizes) - 1}, but only {plural(len(header.classes), 'class')}."
        )
    ids = _class_ids(view, budget, sizes)
    pool = np.flatnonzero(np.isin(labels, ids))
    rank = rank_within_class(labels)[pool]
    if view.balanced:
        order = np.lexsort((labels[pool], rank))
        pool, rank = pool[order], rank[order]
    if budget.per_class is not None:
        counts = np.zeros_like(sizes)
        counts[ids] = [budget.per_class[header.classes[k]] for k in ids]
        chosen = rank < counts[labels[pool]]
        pool, rank = pool[chosen], rank[chosen]
    # Unbalanced, a class without patches counts all the same: else resizing twice would differ from resizing once
    counted = ids if view.balanced or budget.classes is not None else header.classes
    wanted = budget.patches(len(pool), classes=len(counted), factor=header.factor)
    _check_supply(view, budget, wanted, len(pool), sizes[ids])
    classes = tuple(header.classes[k] for k in ids) if budget.renumber else header.classes
    fits = count = view.fitting(wanted, limit, classes)
    if count < wanted and budget.per_class is not None:
        size = view.file_size(wanted, classes)
        raise BadOption(
            f"The {plural(wanted, 'patch')} of `per_class` would need a file of {size:,} bytes, above the limit of `bytes`."
        )
    if count < wanted and view.balanced:
        count = int((rank < rank[count]).sum())  # whole rounds only
        while view.fitting(count, limit, classes) < count:  # a file with fewer patches may be larger
            count = int((rank < rank[count - 1]).sum())
    if not count:
        raise BadOption(_too_few_bytes(view, len(ids) if view.balanced else 1, classes))
    rows = np.sort(pool[:count])
    notes = _notes(view, budget, wanted, fits, len(pool), np.bincount(labels[rows], minlength=len(sizes))[ids])
    if not budget.renumber:
        return Subset(rows, header.patches, labels[rows], classes, None, notes)
    return Subset(rows, header.patches, np.searchsorted(ids, labels[rows]), classes, ids, notes)


def _too_few_bytes(view: SetView, patches: int, classes: tuple[str, ...]) -> str:
    """Why not even the smallest subset fits, and what would help."""
    size, half = view.file_size(patches, classes), ""
    if view.header.dtype == "F32":
        half = f", or pass `dtype` float16 ({view.stored_as('float16').file_size(patches, classes):,} bytes)"
    return f"The smallest subset of {view.name} makes a file of {size:,} bytes; raise `bytes` to that{half}."


def _check_supply(view: SetView, budget: Budget, wanted: int, pool: int, sizes: NDArray[Any]) -> None:
    cells = view.header.factor**2
    if budget.ipc is not None and view.balanced and budget.ipc * cells > sizes.min():
        smallest = int(sizes.min())
        raise BadOption(
            f"{view.name} has {plural(smallest // cells, 'image')} per class (its smallest class has"
            f" {plural(smallest, 'patch')}), fewer than {budget.ipc}; lower `ipc`."
        )
    _check_count(budget, wanted, pool, view.name)


def _check_count(budget: Budget, wanted: int, pool: int, name: str) -> None:
    if wanted > pool:
        raise BadOption(f"{name} has {plural(pool, 'patch')} to choose from, fewer than {wanted}; lower the budget.")
    if not wanted:
        raise BadOption(
            f"A fraction of {percent(budget.exact_fraction)} keeps none of the {plural(pool, 'patch')} of {name};"
            " raise `fraction`."
        )


def _class_ids(view: SetView, budget: Budget, sizes: NDArray[Any]) -> Labels:
    """The labels to choose from: of the classes named, or of those that have patches."""
    header = view.header
    if budget.classes is None and budget.per_class is None:
        return np.flatnonzero(sizes)
    named = budget.classes or [name for name, count in (budget.per_class or {}).items() if count]
    for name in [*named, *(budget.per_class or ())]:
        if name not in header.classes:
            from condense_once.registry import nearest  # slow to import, so only for the error

            raise UnknownName(f"There is no class {name!r} in {view.name}; {nearest(name, header.classes)}")
    ids = np.sort([header.classes.index(name) for name in named])
    for k in ids:
        asked = 1 if budget.per_class is None else budget.per_class[header.classes[k]]
        if sizes[k] < asked:
            raise BadOption(
                f"{view.name} has {plural(int(sizes[k]), 'patch')} of class {header.classes[k]!r}, fewer than {asked}; lower it."
            )
    return ids


def _notes(view: SetView, budget: Budget, wanted: int, fits: int, pool: int, counts: NDArray[Any]) -> tuple[str, ...]:
    """Consequences that the budget does not spell out.

    Of `wanted` patches so many fit in the limit of bytes; `counts` are those kept of each eligible class.
    """
    notes, kept = [], int(counts.sum())
    if kept < wanted and budget.max_bytes is not None and (budget.ipc or budget.total or budget.fraction):
        notes.append(f"Only {kept} of the {plural(wanted, 'patch')} asked for fit in {budget.max_bytes:,} bytes.")
    if kept < fits:
        notes.append(
            f"{plural(kept, 'patch')} in whole rounds of one per class; {fits} would fit, and `total` {fits} keeps them, with one"
            " more of the first classes."
        )
    if budget.ipc is not None and not view.balanced:
        notes.append(f"The ranking is not balanced: it keeps the best {plural(kept, 'patch')}, whatever the class.")
    if view.balanced and budget.per_class is None and kept < pool and counts.min() < counts.max():
        spread = f"between {counts.min()} and {counts.max()} per class"
        if counts.max() - counts.min() > 1:
            notes.append(f"Some classes have too few patches, so others contribute more: {spread}.")
        else:
            notes.append(
                f"The classes cannot share {plural(kept, 'patch')} evenly, so the first keep one more: {spread}."
            )
    return tuple(notes)
