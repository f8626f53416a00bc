"""Signals that end a run: they are noted, and the run ends itself once its work is safe."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from condense_once.errors import CondenseOnceError


class Stopped(CondenseOnceError):
    """A run was told to end and has saved its work."""

    def __init__(self, sentence: str, signal_number: int) -> None:
        super().__init__(sentence)
        self.exit_code = 128 + signal_number


class StopRequest:
    """Whether a run was told to end."""

    def __init__(self) -> None:
        self.signal: int = 0  # its number; 0 for none

    def note(self, number: int, _: FrameType | None) -> None:
        if self.signal and number == signal.SIGINT:
            raise KeyboardInterrupt  # told twice: now, whatever is lost
        self.signal = number


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM instead of being ended by them; only the main thread of a program can."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
