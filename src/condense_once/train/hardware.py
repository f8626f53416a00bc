"""The hardware that networks run on: devices, data types, compilers, threads."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

from condense_once._version import __version__
from condense_once.errors import BadOption
from condense_once.nets.native import has_compiler, warn_of_no_compiler
from condense_once.train.compute_config import Compilation, ComputeConfig, Precision

# The number of passes of 32×32 images through ConvNet-D3 from which compiling pays off: the native kernels, which take two
# seconds once per machine, and `torch.compile`, which takes half a minute or, for DenseNets, four. Other networks and sizes
# count by their multiply-adds.
# A count of the work, not a measured time: the same seed must take the same path, whatever else the machine does.
NATIVE_FROM, COMPILE_FROM = 500, 10_000
PASS = 50_700_000  # multiply-adds of one such pass


def compute_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The data type to compute in: bfloat16 only if the hardware has it, as emulation is ten times slower."""
    if precision == "float32" or (precision == "auto" and not has_bfloat16(device)):
        return torch.float32
    return torch.bfloat16


def has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu" or os.environ.get("CONDENSE_ONCE_BFLOAT16") == "0":
        return False
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


class Compiled(NamedTuple):
    """What of a network is compiled."""

    native: bool  # native kernels, for float32 on the CPU
    whole: bool  # `torch.compile`; with native kernels only on request, as it gains little (benchmarks/bench_nets.py)


def how_compiled(compilation: Compilation, device: torch.device, dtype: torch.dtype, image_passes: float) -> Compiled:
    """What to compile for a job of this many passes, or the same amount of work."""
    native = device.type == "cpu" and dtype == torch.float32
    if compilation != "auto":
        return Compiled(native and compilation == "on", compilation == "on")
    worthwhile = Compiled(native and image_passes >= NATIVE_FROM, not native and image_passes >= COMPILE_FROM)
    if device.type != "cuda" and any(worthwhile) and not has_compiler():
        warn_of_no_compiler()
        return Compiled(False, False)
    return worthwhile


def dtype_and_compiler(
    compute: ComputeConfig, device: torch.device, image_passes: float
) -> tuple[torch.dtype, Compiled]:
    """How a network runs outside of the trainer: without `torch.compile`, bfloat16 is slower on a CPU than our kernels."""
    dtype = compute_dtype(compute.precision, device)
    compiled = how_compiled(compute.compilation, device, dtype, image_passes)
    if compiled.whole or compute.precision != "auto":
        return dtype, compiled
    dtype = eager_dtype(compute.precision, device)
    return dtype, how_compiled(compute.compilation, device, dtype, image_passes)


def eager_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The data type of a network that is never compiled."""
    return compute_dtype("float32" if precision == "auto" and device.type == "cpu" else precision, device)


def find_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):  # NotImplementedError, too; PyTorch's reasons take a screenful
        device = torch.device("meta")
    if device.type == "meta":  # which has no numbers
        others = f" or cuda (0 to {torch.cuda.device_count() - 1})" if torch.cuda.is_available() else ""
        raise BadOption(f"There is no device {name!r} here that PyTorch can use; use cpu{others}.")
    return device


def processor() -> str:
    """The name of the CPU."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """The software versions, to be recorded with results."""
    return {"condense-once": __version__, "torch": torch.__version__, "python": platform.python_version()}


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run the block with `count` threads per operation."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
