"""What this machine can do: half precision in hardware, a compiler for the compiled step, threads."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch

from condense_once._version import __version__
from condense_once.errors import BadOption
from condense_once.text import first_line

Precision = Literal["auto", "float32", "bfloat16"]
Compilation = Literal["auto", "on", "off"]

# From so many passes of 32×32 images through ConvNet-D3 on, compiling is repaid: that of our own layers, which takes 5 seconds
# the first time on a machine and 2 in every process, and PyTorch's, which takes half a minute or, for DenseNets, four.
# Other networks and sizes count by their multiplications.
# A count of one training's work, not a measured time: the same seed must take the same path, whatever runs beside it.
REPAID_NATIVE, REPAID = 500, 10_000
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_MAX = -1, -2, -4, -8  # of malloc.h
PASS = 50_700_000  # multiplications of one such pass


@dataclass(frozen=True)
class ComputeConfig:
    """How and where networks run. It decides speed and rounding, not what is computed."""

    precision: Precision = "auto"
    compilation: Compilation = "auto"
    device: str = "cpu"
    workers: int | None = None  # training runs in parallel; by default one per core
    threads: int = 1  # of each training run; another number changes the last bits

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision) or self.compilation not in get_args(Compilation):
            raise BadOption(
                f"`precision` is one of {', '.join(get_args(Precision))} and `compilation` one of"
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
        """The type of the multiplications on this machine, such as float32."""
        return str(compute_dtype(self.precision, find_device(self.device))).removeprefix("torch.")


def compute_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The type of the multiplications: bfloat16 only where the hardware has it; emulated it is ten times slower."""
    if precision == "float32" or (precision == "auto" and not has_bfloat16(device)):
        return torch.float32
    return torch.bfloat16


def has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(found.get("avx512_bf16") or found.get("amx_bf16"))


class Compiled(NamedTuple):
    """What of a network is compiled."""

    layers: bool  # ours, for float32 on the CPU
    whole: bool  # by PyTorch; beside our layers only on request, for it gains little there (benchmarks/bench_nets.py)


def how_compiled(compilation: Compilation, device: torch.device, dtype: torch.dtype, image_passes: float) -> Compiled:
    """What to compile for a job of so many passes, or as much work as they are."""
    ours = device.type == "cpu" and dtype == torch.float32
    if compilation != "auto":
        return Compiled(ours and compilation == "on", compilation == "on")
    if device.type != "cuda" and not has_compiler():
        return Compiled(False, False)
    return Compiled(ours and image_passes >= REPAID_NATIVE, not ours and image_passes >= REPAID)


def has_compiler() -> bool:
    """Whether there is the compiler that PyTorch would call."""
    return shutil.which(os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")) is not None


def find_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadOption(f"There is no device {name!r} here ({first_line(error)}); pass cpu.") from None
    return device


@cache
def keep_memory() -> None:
    """Let memory that is freed stay with the process, where the C library is glibc and CONDENSE_ONCE_KEEP_MEMORY is not 0.

    It gives large blocks back to the system at once, which zeroes every page of them when they are wanted again. In steps of
    64 images of 32×32 that is a tenth of the time, in threads beside the main one, which have heaps of their own, a quarter. So
    nothing is mapped apart, all threads share one heap, and up to 2 GiB at its end are kept.
    """
    if sys.platform != "linux" or os.environ.get("CONDENSE_ONCE_KEEP_MEMORY") == "0":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((M_MMAP_MAX, 0), (M_ARENA_MAX, 1), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 256 << 20)):
            mallopt(option, value)


def processor() -> str:
    """What the processor is called."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """What computes here, for whoever wants to know later."""
    return {"condense-once": __version__, "torch": torch.__version__, "python": platform.python_version()}


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run the block with `count` threads for each operation."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
