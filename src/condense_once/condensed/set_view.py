"""A view of a set, in memory or on file: what choosing a subset needs to know of it. Standard library and numpy only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from condense_once.condensed.file import SetFile, header_of, saved_size
from condense_once.condensed.header import Header
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.set import CondensedSet, subset_name, subset_provenance
from condense_once.condensed.stored_dtype import StoredDtype, check_dtype, with_dtype, with_label_coding
from condense_once.container import CODES
from condense_once.errors import BadOption


@dataclass(frozen=True)
class SetView:
    """The header of a set, and its rows from the first one on, read on demand."""

    header: Header  # its checksums are ignored
    metrics: tuple[str, ...]  # whose scores are stored with the patches
    labels: Callable[[int], NDArray[Any]]  # the first so many, in stored order
    read: Callable[[int], CondensedSet]  # the first so many patches
    name: str  # for messages

    @classmethod
    def of(cls, data: CondensedSet | str | Path) -> SetView:
        """A view of a set, or of the one at a path or with the name of a bundled set."""
        if isinstance(data, CondensedSet):
            labels, metrics = data.labels, tuple(data.scores)
            return cls(header_of(data), metrics, lambda stop: labels[:stop], lambda _: data, data.name)
        from condense_once.condensed.bundled import find_set  # slow to import, and devices open files by themselves

        return cls.of_file(SetFile.open(find_set(data)), name=str(data))

    @classmethod
    def of_file(cls, file: SetFile, name: str | None = None) -> SetView:
        header = file.header
        if file.layered is not None:  # what is kept of it is stored as it was decoded
            header = replace(file.full_header, codec="raw", code=None)
        return cls(header, file.metrics, lambda stop: file.rows("labels", stop), file.read, name or header.name)

    def stored_as(self, dtype: StoredDtype) -> SetView:
        """A view of the same set with its cells in another data type."""
        check_dtype(self.header.space.kind, dtype, self.name)
        read = self.read
        header = replace(self.header, dtype=CODES[dtype])
        return replace(self, header=header, read=lambda stop: with_dtype(read(stop), dtype))

    def labels_stored_as(self, coding: str) -> SetView:
        """A view of the same set with its soft labels in another coding."""
        if not self.header.soft_labels:
            raise BadOption(f"{self.name} has no soft labels; leave out `label_coding`.")
        known = LabelCoding.parse(coding).for_classes(len(self.header.classes))
        read, header = self.read, replace(self.header, label_coding=str(known))
        return replace(self, header=header, read=lambda stop: with_label_coding(read(stop), coding))

    @property
    def balanced(self) -> bool:
        return self.header.ranking is not None and self.header.ranking.balanced

    def file_size(self, patches: int, classes: tuple[str, ...]) -> int:
        """Bytes of a file of so many of its patches."""
        coding = LabelCoding.parse(self.header.label_coding).for_classes(len(classes))
        part = replace(self.header, patches=patches, classes=classes, label_coding=str(coding))
        if patches < (total := self.header.patches):
            provenance, ranking = self.header.provenance, self.header.ranking
            name = subset_name(self.header.name, ranking, provenance, total=total, patches=patches)
            part = replace(part, name=name, provenance=subset_provenance(provenance, total))
        return saved_size(part, self.metrics)

    def fitting(self, count: int, limit: int | None, classes: tuple[str, ...]) -> int:
        """How many of `count` patches make a file within `limit` bytes; may be 0.

        File sizes grow with the count, except for a step down of 16 KiB where the checksum blocks double (16 MiB, 32 MiB, …);
        a limit within such a step may give slightly less than the maximum, never more.
        """
        if limit is None:
            return count
        low, high = 0, count + 1
        middle = count  # usually everything fits
        while high - low > 1:
            low, high = (middle, high) if self.file_size(middle, classes) <= limit else (low, middle)
            middle = (low + high) // 2
        return low
