from __future__ import annotations

import os
import subprocess
import sys

import pytest

from condense_once.train import memory

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(memory.ctypes.CDLL(None), "mallopt"), reason="only glibc has mallopt"
)

# Counts the page faults of allocating, writing and freeing a large block again and again.
MEASURE = """
import ctypes, resource

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def allocate(size=48 << 20):  # above the largest threshold from which glibc maps blocks by itself
    block = libc.malloc(size)
    libc.memset(block, 1, size)
    libc.free(block)

allocate()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    allocate()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

KEEP = "from condense_once.train.memory import keep_freed_memory; keep_freed_memory()"
TRAIN = """
from condense_once.condensed.space import Space
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer

Trainer("convnet-d1-w8", DataSpec((3, 8, 8), 2, Space("pixels", (0.5,) * 3, (0.25,) * 3)), Recipe(), passes=0)
"""
COMMAND_LINE = """
import sys
from condense_once.cli import main

sys.argv = ["condense-once", "score", "--help"]
output, sys.stdout = sys.stdout, sys.stderr
try:
    main()
except SystemExit:
    sys.stdout = output
"""


def page_faults(program: str, **environment: str) -> int:
    env = {key: value for key, value in os.environ.items() if key != "CONDENSE_ONCE_KEEP_MEMORY"}
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\n{MEASURE}"],
        env=env | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_freed_memory_is_kept_by_programs_that_ask_for_it() -> None:
    plain, kept = page_faults(""), page_faults(KEEP)
    assert plain > 100
    assert kept < plain / 10
    assert page_faults(KEEP, CONDENSE_ONCE_KEEP_MEMORY="0") > plain / 2


def test_the_command_line_asks_for_it_and_a_trainer_does_not() -> None:
    plain = page_faults("")
    assert page_faults(COMMAND_LINE) < plain / 10
    assert page_faults(TRAIN) > plain / 2
