"""Open a condensed set by path or address and take as much of it as a device has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.file import SetFile
from condense_once.condensed.header import Header
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.condensed.subset import Selection, Stock, choose
from condense_once.errors import BadFile

WHITENED = (
    "This set is whitened: images of the device's own must be whitened in the same way, mean and std are not enough."
)


@dataclass(frozen=True)
class Share:
    """What a device trains on, in the order of the ranking."""

    patches: NDArray[np.float32]  # [k, ch, h, w] decoded, in the set's own value space (pixels on the scale 0…1)
    labels: NDArray[np.int64]  # [k]
    soft_labels: NDArray[np.float32] | None  # [k, C]
    classes: tuple[str, ...]
    space: Space
    notes: tuple[str, ...] = ()  # what the budget brought about without saying so, as sentences

    def __len__(self) -> int:
        return len(self.patches)

    @property
    def inputs(self) -> NDArray[np.float32]:
        """The patches as a network wants them, `[k, ch, h, w]`: normalised exactly once."""
        return self.space.to_network(self.patches)

    @property
    def mean(self) -> NDArray[np.float32]:
        """Of the source's pixels, `[ch]`: what the device's own images have to be normalised with, unless the set is whitened."""
        return np.array(self.space.mean, np.float32)

    @property
    def std(self) -> NDArray[np.float32]:
        return np.array(self.space.std, np.float32)


class DeviceSet:
    """An open set: its header, and shares on demand."""

    def __init__(self, file: SetFile, notes: tuple[str, ...] = ()) -> None:
        self._file = file
        self._notes = notes

    @property
    def header(self) -> Header:
        """Everything that is known of the set."""
        return self._file.header

    def __len__(self) -> int:
        return self.header.patches

    def take(
        self,
        *,
        ipc: int | None = None,
        total: int | None = None,
        fraction: float | str | Fraction | None = None,
        bytes: int | str | None = None,  # noqa: A002 (the word that `Budget` and the command line use)
        classes: Sequence[str] | None = None,
        per_class: Mapping[str, int] | None = None,
        renumber: bool = False,
    ) -> Share:
        """The best part of the set that a budget allows, or all of it; `Budget` says what the words mean.

        The same patches as `resize` keeps. No more of the file is read than up to the last of them.
        """
        budget = Budget(ipc, total, fraction, bytes, classes, per_class, renumber)
        chosen = choose(budget, Stock.on_file(self._file))
        part = self._part(chosen)
        notes = self._notes + chosen.notes + ((WHITENED,) if part.space.kind == "zca" else ())
        return Share(part.patches(), part.labels, part.soft_labels, part.classes, part.space, notes)

    def _part(self, chosen: Selection) -> CondensedSet:
        """The rows up to the last one chosen, and of them the chosen; what training does not need is not read."""
        header, stop = self.header, chosen.stop
        try:
            return chosen.of(
                CondensedSet(
                    cells=self._file.rows("cells", stop),
                    labels=self._file.rows("labels", stop).astype(np.int64),
                    classes=header.classes,
                    size=header.image[1:],
                    factor=header.factor,
                    space=header.space,
                    origin=np.arange(stop),  # not the true ones, which nobody sees here
                    soft_labels=self._file.rows("soft_labels", stop) if header.soft_labels else None,
                )
            )
        except BadFile as error:
            where = self._file.file.name
            raise BadFile(str(error) if where in str(error) else f"{where}: {error}") from None


def open_set(where: str | Path, *, timeout: float = 20.0) -> DeviceSet:
    """Open a set by path, by the name of a bundled one, or by an address that starts with http:// or https://.

    Of a web server's file only the beginning is fetched; a connection that is silent for `timeout` seconds is given up.
    """
    if isinstance(where, str) and "://" in where:
        from condense_once.device.remote_file import WebFile  # devices that read local files need no network code

        file = WebFile(where, timeout=timeout)
        whole = f"The server does not send parts of files, so all {file.size:,} bytes were fetched."
        return DeviceSet(SetFile(file), () if file.in_parts else (whole,))
    path = Path(where)
    if not path.exists():
        from condense_once.condensed.bundled import find_set  # knows the bundled names, and what to say of others

        path = find_set(where)
    return DeviceSet(SetFile.open(path))
