"""Classes over processes: each owns some of them, and networks are the same everywhere.

Started by `torchrun`, every process runs the same loop with the same seeds, but moves the images of its own classes only.
Since no class needs to know of another, the images are those that one process would have made.
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

from condense_once.errors import CondenseOnceError
from condense_once.text import first_line

PATIENCE = timedelta(hours=2)  # how long the others are waited for: one of them may be evaluating


class LostProcess(CondenseOnceError):
    """Another process of a sharded job has ended."""


class Shard:
    """The part of one process. With a single one, all classes are its own and nothing has to be sent."""

    def __init__(self, rank: int = 0, world: int = 1) -> None:
        self.rank, self.world = rank, world

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def owns(self, label: int) -> bool:
        return label % self.world == self.rank

    def gather(self, values: Tensor) -> None:
        """Fill in the rows `[C, …]` of the others' classes, in place."""
        if self.world == 1:
            return
        others = [label for label in range(len(values)) if not self.owns(label)]
        values[others] = 0
        with _peers():
            dist.all_reduce(values)

    def gather_rows(
        self, rows: Mapping[int, NDArray[np.int64]], classes: int, most: int
    ) -> dict[int, NDArray[np.int64]]:
        """The row numbers, at most so many, that each class has with its owner."""
        if self.world == 1:
            return dict(rows)
        table = torch.full((classes, most), -1, device=_device())
        for label, chosen in rows.items():
            table[label, : len(chosen)] = torch.from_numpy(chosen)
        self.gather(table)
        return {label: found[found >= 0].numpy() for label, found in enumerate(table.cpu()) if int(found[0]) >= 0}

    def agree(self, net: nn.Module) -> None:
        """Take over the first process's network, lest unlike machines drift apart."""
        if self.world > 1:
            with _peers():
                for tensor in net.state_dict().values():
                    dist.broadcast(tensor, 0)

    def total(self, *numbers: float) -> list[float]:
        """Each number, summed over all processes."""
        if self.world == 1:
            return list(numbers)
        values = torch.tensor(numbers, dtype=torch.float64, device=_device())
        with _peers():
            dist.all_reduce(values)
        return [float(value) for value in values]

    def from_first(self, text: str) -> str:
        """What the first process says, for all."""
        if self.world == 1:
            return text
        said: list[Any] = [text]
        with _peers():
            dist.broadcast_object_list(said, 0)
        return str(said[0])


def is_first() -> bool:
    """Whether this process speaks and writes for the whole job."""
    return not _in_a_job() or os.environ.get("RANK", "0") == "0"


def _in_a_job() -> bool:
    """Whether `torchrun`, or something that speaks like it, started this process among others."""
    return os.environ.get("WORLD_SIZE", "1") != "1" and "MASTER_ADDR" in os.environ


@contextmanager
def joined(device: str) -> Iterator[Shard]:
    """The shard of this process in the job that `torchrun` started, or the whole where it did not.

    A process group that is there already is used and left as it is.
    """
    if dist.is_available() and dist.is_initialized():
        yield Shard(dist.get_rank(), dist.get_world_size())
        return
    if not _in_a_job():
        yield Shard()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with _peers():
        dist.init_process_group("nccl" if device.startswith("cuda") else "gloo", timeout=PATIENCE)
    try:
        yield Shard(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


@contextmanager
def _peers() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo and nccl know no better type for a peer that is gone
        raise LostProcess(
            f"Another process of this job has ended or cannot be reached ({first_line(error)}); start it again with"
            " --resume to go on from the last checkpoint."
        ) from None


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
