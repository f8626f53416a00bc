"""Where and how networks run, as configured: device, precision, compilation, threads. Without torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

from condense_once.errors import BadOption

Precision = Literal["auto", "float32", "bfloat16"]
Compilation = Literal["auto", "on", "off"]


@dataclass(frozen=True)
class ComputeConfig:
    """Where and how networks run. It decides speed and rounding, not what is computed."""

    precision: Precision = "auto"
    compilation: Compilation = "auto"
    device: str = "cpu"
    workers: int | None = None  # training runs in parallel; by default one per core
    threads: int = 1  # per training run; another number changes the last bits

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision) or self.compilation not in get_args(Compilation):
            raise BadOption(
                f"`precision` must be one of {', '.join(get_args(Precision))} and `compilation` one of"
                f" {', '.join(get_args(Compilation))}, not {self.precision!r} and {self.compilation!r}."
            )
        if self.threads < 1 or (self.workers is not None and self.workers < 1):
            raise BadOption(f"`workers` and `threads` must be at least 1, not {self.workers} and {self.threads}.")

    def parallel_runs(self, runs: int) -> int:
        """How many of `runs` training runs execute at a time."""
        if self.device != "cpu":
            return 1
        return min(runs, self.workers or max(1, cores() // self.threads))

    @property
    def computed_in(self) -> str:
        """The data type that networks compute in on this machine, such as float32."""
        from condense_once.train.hardware import compute_dtype, find_device  # late: they need torch

        return str(compute_dtype(self.precision, find_device(self.device))).removeprefix("torch.")


def cores() -> int:
    """The number of CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
