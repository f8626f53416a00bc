"""The same patches in other orders: under which keys a store may know a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.bundled import load
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption, CondenseOnceError
from condense_once.selection.compare import matching_rows
from condense_once.studies.grid import set_key
from condense_once.studies.store import Store

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class SamePatches:
    """Keys of a set in the orders that studies may have seen it in, with the rows of each in the order of the set."""

    rows: dict[str, Rows]  # by key; the row there of every patch of the set, `[N]`

    @classmethod
    def of(cls, data: CondensedSet, others: Iterable[CondensedSet] = ()) -> SamePatches:
        """As it is, as it was condensed, and as in those of the others that have the same patches."""
        by_origin = np.argsort(data.origin, kind="stable")
        found = {set_key(data): np.arange(len(data)), set_key(data.take(by_origin)): np.argsort(by_origin)}
        for other in others:
            with suppress(BadOption):
                found.setdefault(set_key(other), matching_rows(data, other))
        return cls(found)


def studied_sets(store: Store) -> Iterator[CondensedSet]:
    """The sets of all studies in a store, as far as they are still there."""
    names = dict.fromkeys(name for spec in store.study_specs() for name in spec["study"]["sets"])
    for name in names:
        with suppress(CondenseOnceError):
            yield load(name)
