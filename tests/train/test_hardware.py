from __future__ import annotations

import sys

import pytest

from condense_once.train import hardware
from condense_once.train.hardware import ComputeConfig, keep_memory


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps memory")
@pytest.mark.parametrize(("said", "changes"), [(None, 4), ("1", 4), ("0", 0)])
def test_the_memory_of_the_process_is_left_alone_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, said: str | None, changes: int
) -> None:
    set_to: list[int] = []

    class Library:
        def __init__(self, _: None) -> None: ...

        def mallopt(self, option: int, value: int) -> None:
            set_to.append(value)

    monkeypatch.setattr(hardware.ctypes, "CDLL", Library)
    monkeypatch.delenv("CONDENSE_ONCE_KEEP_MEMORY", raising=False)
    if said is not None:
        monkeypatch.setenv("CONDENSE_ONCE_KEEP_MEMORY", said)
    keep_memory.__wrapped__()
    assert len(set_to) == changes


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_computed_in_is_named_plainly(precision: hardware.Precision) -> None:
    assert ComputeConfig(precision).computed_in == precision
    assert ComputeConfig().computed_in in ("float32", "bfloat16")
