"""The progress of a study: a bar on a terminal, else a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.progress import ProgressColumn, Task
from rich.text import Text

from condense_once.cli.printing import err_console, log, track
from condense_once.text import human_time, plural

if TYPE_CHECKING:
    from condense_once.studies.progress import StudyProgress

STEPS = 1000  # of the bar, which measures work: cells differ in length
LINE_EVERY = 30.0  # seconds between two lines while nothing ends
ENOUGH = 0.05  # of the work, to estimate the time of the rest: starting takes time, too
LINE_AFTER = 5.0  # seconds after the last line from which a run that ends is worth another


@contextmanager
def track_study(title: str) -> Iterator[Callable[[StudyProgress], None]]:
    """Show the progress while the block runs; yields the function to report to."""
    if not err_console.is_terminal:
        yield _Lines(title)
        return
    column = _Cells()

    def report(progress: StudyProgress) -> None:
        column.progress = progress
        total = progress.work_done + progress.work_left
        bar(int(STEPS * progress.work_done / total) if total else STEPS, STEPS)

    with track(title, column) as bar:
        yield report


class _Lines:
    """Prints how far a study is, for logs: when a run has ended, and every half a minute."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._start = self._printed = monotonic()
        self._over = 0  # runs at the last line

    def __call__(self, progress: StudyProgress) -> None:
        now, over = monotonic(), progress.done + progress.failed
        wait = LINE_EVERY if over == self._over else LINE_AFTER
        if now - self._printed < wait or not progress.work_left:
            return
        share = progress.work_done / (progress.work_done + progress.work_left)
        counted = f"{progress.done} of {plural(progress.total, 'run')}" if progress.total else f"{share:.0%} of scoring"
        line = f"{self._title}: {counted} done"
        if progress.failed:
            line += f", {progress.failed} failed"
        if share >= ENOUGH:
            line += f", about {human_time((now - self._start) * progress.work_left / progress.work_done)} left"
        log(line)
        self._printed, self._over = now, over


class _Cells(ProgressColumn):
    """How many cells are done and how many failed."""

    progress: StudyProgress | None = None

    def render(self, task: Task) -> Text:
        now = self.progress
        if now is None:
            return Text("")
        return Text(f"{now.done}/{now.total}" + (f", {now.failed} failed" if now.failed else ""))
