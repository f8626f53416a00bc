"""SIGINT and SIGTERM end a run only once its work is saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from condense_once.errors import CondenseOnceError


class Interrupted(CondenseOnceError):
    """A signal ended a run. The message says whether its work was saved."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class StopRequest:
    """Whether a signal has asked the run to end."""

    def __init__(self) -> None:
        self.signal: int = 0  # its number; 0 for none

    def handle(self, number: int, _: FrameType | None) -> None:
        if self.signal and number == signal.SIGINT:
            raise KeyboardInterrupt  # the second Ctrl-C ends it at once, whatever is lost
        self.signal = number


@contextmanager
def deferred_signals() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM instead of being ended by them. Only the main thread of a program can do that."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
