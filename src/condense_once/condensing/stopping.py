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


class Bell:
    """Remembers whether somebody rang."""

    def __init__(self) -> None:
        self.rung: int = 0  # the signal's number

    def ring(self, number: int, _: FrameType | None) -> None:
        if self.rung and number == signal.SIGINT:
            raise KeyboardInterrupt  # rung twice: now, whatever is lost
        self.rung = number


@contextmanager
def listening() -> Iterator[Bell]:
    """Note SIGINT and SIGTERM instead of being ended by them; only the main thread of a program can."""
    bell = Bell()
    if threading.current_thread() is not threading.main_thread():
        yield bell
        return
    before = {number: signal.signal(number, bell.ring) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield bell
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
