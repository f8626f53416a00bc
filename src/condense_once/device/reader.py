"""Open a condensed set by path or URL and take as much of it as fits the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.file import SetFile
from condense_once.condensed.header import Header
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.set_view import SetView
from condense_once.condensed.soft_labels import LabelKind
from condense_once.condensed.space import Space
from condense_once.condensed.subset import Subset, choose_subset
from condense_once.container import Beginning
from condense_once.errors import BadFile
from condense_once.text import plural

WHITENED = "This set is ZCA-whitened: whiten the device's own images in the same way, normalising by mean and std is not enough."


@dataclass(frozen=True)
class DeviceSubset:
    """The patches that a device trains on, best first."""

    patches: NDArray[np.float32]  # [k, ch, h, w] decoded, in the set's own value space (pixels on the scale 0…1)
    labels: NDArray[np.int64]  # [k]
    soft_labels: NDArray[np.float32] | None  # [k, C]
    classes: tuple[str, ...]
    space: Space
    notes: tuple[str, ...] = ()  # consequences of the budget that the user should know, as sentences
    label_kind: LabelKind | None = (
        None  # of soft labels: probabilities, logits (for a softmax), or values to regress on
    )

    def __len__(self) -> int:
        return len(self.patches)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.patches.shape[1:]))
        return f"<DeviceSubset: {plural(len(self), 'patch')} {shape}, {plural(len(self.classes), 'class')}>"

    @property
    def inputs(self) -> NDArray[np.float32]:
        """Normalised network inputs, `[k, ch, h, w]`."""
        return self.space.to_network(self.patches)

    @property
    def mean(self) -> NDArray[np.float32]:
        """Channel means of the source, `[ch]`, to normalise the device's own images with, unless the set is whitened."""
        return np.array(self.space.mean, np.float32)

    @property
    def std(self) -> NDArray[np.float32]:
        return np.array(self.space.std, np.float32)


class DeviceSet:
    """An open set: its header, and subsets on demand."""

    def __init__(
        self, file: SetFile, notes: tuple[str, ...] = (), before_take: Callable[[], None] = lambda: None
    ) -> None:
        self._file = file
        self._notes = notes
        self._before_take = before_take

    @property
    def header(self) -> Header:
        """All metadata of the set."""
        return self._file.header

    def __len__(self) -> int:
        return self.header.patches

    def take(
        self,
        *,
        ipc: int | None = None,
        total: int | None = None,
        fraction: float | str | Fraction | None = None,
        bytes: int | str | None = None,  # noqa: A002 (the field of `Budget`)
        classes: Sequence[str] | None = None,
        per_class: Mapping[str, int] | None = None,
        renumber: bool = False,
    ) -> DeviceSubset:
        """The best patches within a budget, by default all of them; see `Budget` for the parameters.

        Keeps the same patches as `resize`, and reads the file no further than the last of them.
        """
        budget = Budget(ipc, total, fraction, bytes, classes, per_class, renumber)
        self._before_take()
        file, coded = self._file, tuple[str, ...]()
        if file.layered is not None:
            file, budget, coded = _beginning(file, budget)
        subset = choose_subset(SetView.of_file(file), budget)
        part = _read(file, subset)
        notes = self._notes + coded + subset.notes + ((WHITENED,) if part.space.kind == "zca" else ())
        return DeviceSubset(
            part.patches(), part.labels, part.soft_labels, part.classes, part.space, notes, part.label_kind
        )


def _beginning(file: SetFile, budget: Budget) -> tuple[SetFile, Budget, tuple[str, ...]]:
    """As much of a layered file as a limit of bytes allows, what else the budget asks for, and what there is of it."""
    if budget.max_bytes is not None:
        file, budget = SetFile(Beginning(file.file, budget.max_bytes)), replace(budget, bytes=None)
    ends = file.full_header.provenance["coded"]["patches"]
    finest = ", ".join(
        f"{count} in {end} of {plural(len(ends), 'layer')}" for end, count in enumerate(ends, 1) if count
    )
    return file, budget, (f"{plural(file.header.patches, 'patch')} of {file.header.name}: {finest}.",)


def _read(file: SetFile, subset: Subset) -> CondensedSet:
    """The rows of a subset; tensors that training does not need are not read."""
    header, stop = file.header, subset.stop
    try:
        return subset.take_from(
            CondensedSet(
                cells=file.rows("cells", stop),
                labels=file.rows("labels", stop).astype(np.int64),
                classes=header.classes,
                size=header.image[1:],
                factor=header.factor,
                space=header.space,
                origin=np.arange(stop),  # placeholders: a device does not see origins
                soft_labels=file.soft_labels(stop),
                label_kind=header.label_kind,
                label_coding=header.label_coding,
            )
        )
    except BadFile as error:
        where = file.file.name
        raise BadFile(str(error) if where in str(error) else f"{where}: {error}") from None


def open_set(
    where: str | Path, *, timeout: float = 20.0, max_bytes: int = 256 * 2**20, max_seconds: float = 300.0
) -> DeviceSet:
    """Open a set by path, by the name of a bundled set, or by an http(s) URL.

    Only the beginning of a remote file is fetched. A connection times out after `timeout` seconds of silence. Whatever the
    server says, opening and all takes together fetch at most `max_bytes`, and opening and each take end after `max_seconds`.
    """
    if isinstance(where, str) and "://" in where:
        from condense_once.device.remote_file import RemoteFile  # local files need no network code

        file = RemoteFile(where, timeout=timeout, max_bytes=max_bytes, max_seconds=max_seconds)
        whole = f"The server does not support range requests, so all {file.size:,} bytes were downloaded."
        return DeviceSet(SetFile(file), () if file.supports_ranges else (whole,), file.restart_clock)
    path = Path(where)
    if not path.exists():
        from condense_once.condensed.bundled import find_set  # late: local paths need no registry

        path = find_set(where)
    return DeviceSet(SetFile.open(path))
