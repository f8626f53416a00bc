"""Condensing in several processes: each owns some classes, and all of them train the same network.

Under `torchrun` every process runs the same loop with the same seeds, but updates the images of its own classes only. No class
depends on another, so the images equal those of a single process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from condense_once.errors import BadOption, CondenseOnceError
from condense_once.text import first_line

TIMEOUT = timedelta(hours=2)  # one process may be evaluating meanwhile


class ProcessLost(CondenseOnceError):
    """Another process of a distributed run has ended."""


class World:
    """The place of this process among all processes of a run. A single process owns all classes and sends nothing."""

    def __init__(self, rank: int = 0, size: int = 1, *, connected: bool = True) -> None:
        self.rank, self.size, self._connected = rank, size, connected and size > 1

    def disconnected(self) -> World:
        """The same share of the work without any exchange, for what one process does while the others wait."""
        return World(self.rank, self.size, connected=False)

    @property
    def is_primary(self) -> bool:
        return self.rank == 0

    def owns(self, label: int) -> bool:
        return label % self.size == self.rank

    def gather_classes(self, values: Tensor) -> None:
        """Fill in the rows `[C, …]` of classes that other processes own, in place."""
        if not self._connected:
            return
        others = [label for label in range(len(values)) if not self.owns(label)]
        values[others] = 0
        with _peers():
            dist.all_reduce(values)

    def gather_rows(
        self, rows: Mapping[int, NDArray[np.int64]], classes: int, most: int
    ) -> dict[int, NDArray[np.int64]]:
        """The row numbers, at most `most`, that the owner of each class holds for it."""
        if not self._connected:
            return dict(rows)
        table = torch.full((classes, most), -1, device=_device())
        for label, chosen in rows.items():
            table[label, : len(chosen)] = torch.from_numpy(chosen)
        self.gather_classes(table)
        return {label: found[found >= 0].numpy() for label, found in enumerate(table.cpu()) if int(found[0]) >= 0}

    def broadcast_weights(self, net: nn.Module) -> None:
        """Synchronise weights from rank 0, so that different machines do not drift apart."""
        if self._connected:
            with _peers():
                for tensor in net.state_dict().values():
                    dist.broadcast(tensor, 0)

    def all_sum(self, *numbers: float) -> list[float]:
        """Each number summed over all processes."""
        if not self._connected:
            return list(numbers)
        values = torch.tensor(numbers, dtype=torch.float64, device=_device())
        with _peers():
            dist.all_reduce(values)
        return [float(value) for value in values]

    def all_equal(self, number: int) -> bool:
        """Whether all processes have the same number."""
        total, squares = self.all_sum(number, number**2)
        return not self._connected or self.size * squares == total**2

    def broadcast_text(self, text: str) -> str:
        """The text of rank 0."""
        if not self._connected:
            return text
        texts: list[Any] = [text]
        with _peers():
            dist.broadcast_object_list(texts, 0)
        return str(texts[0])


def is_primary() -> bool:
    """Whether this process prints and writes for the whole run."""
    return not _launched() or os.environ.get("RANK", "0") == "0"


def refuse_processes(what: str) -> None:
    """Refuse work that one process does alone."""
    if _launched():
        raise BadOption(f"{what} in one process; start it without torchrun.")


def _launched() -> bool:
    """Whether `torchrun`, or a launcher that sets the same variables, started this process among others."""
    return os.environ.get("WORLD_SIZE", "1") != "1" and "MASTER_ADDR" in os.environ


@contextmanager
def process_group(device: str) -> Iterator[World]:
    """Join the process group that `torchrun` started, if it did; an existing group is used and left open."""
    if dist.is_available() and dist.is_initialized():
        yield World(dist.get_rank(), dist.get_world_size())
        return
    if not _launched():
        yield World()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with _peers():
        dist.init_process_group("nccl" if device.startswith("cuda") else "gloo", timeout=TIMEOUT)
    try:
        yield World(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


@contextmanager
def _peers() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo and nccl have no better type for a peer that is gone
        raise ProcessLost(
            f"Another process of this run has ended or is unreachable ({first_line(error)}); restart all of them with"
            " `resume` to continue from the last checkpoint."
        ) from None


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
