"""The progress bar of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import ProgressColumn, Task
from rich.text import Text

from condense_once.cli.printing import track

if TYPE_CHECKING:
    from condense_once.studies.progress import StudyProgress

STEPS = 1000  # of the bar, which measures work: cells differ in length


@contextmanager
def track_study(title: str) -> Iterator[Callable[[StudyProgress], None]]:
    """Show a progress bar while the block runs; yields the function to report to."""
    column = _Cells()

    def report(progress: StudyProgress) -> None:
        column.progress = progress
        total = progress.work_done + progress.work_left
        bar(int(STEPS * progress.work_done / total) if total else STEPS, STEPS)

    with track(title, column) as bar:
        yield report


class _Cells(ProgressColumn):
    """How many cells are done and how many failed."""

    progress: StudyProgress | None = None

    def render(self, task: Task) -> Text:
        now = self.progress
        if now is None:
            return Text("")
        return Text(f"{now.done}/{now.total}" + (f", {now.failed} failed" if now.failed else ""))
