"""`study status` and `study retry`: all studies of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from condense_once.cli.printing import note, print_json, print_rows
from condense_once.cli.study_progress import track_study
from condense_once.text import human_time

if TYPE_CHECKING:
    from condense_once.studies.engines import EngineName
    from condense_once.studies.stored_studies import StudyStatus
    from condense_once.train.hardware import ComputeConfig

COUNTS = ("runs", "done", "missing", "failed")
COLUMNS = ("study", "sets", "protocol", *COUNTS, "time left")


def show_status(store: Path, *, as_json: bool) -> None:
    """Print the progress of each study; one that cannot be opened does not hide the others."""
    from condense_once.studies.stored_studies import study_statuses

    rows = []
    for status in study_statuses(store):
        if status.error is not None:
            note([f"{status.study} cannot be opened: {status.error}"])
        note(f"{status.study}: {sentence}" for sentence in (*status.failures, *status.damage))
        rows.append(_row(status))
    if as_json:
        print_json(rows)
    else:
        print_rows(COLUMNS, [[row.get(column, "–") for column in COLUMNS] for row in rows])


def retry(store: Path, engine: EngineName, address: str | None, workers: int | None, compute: ComputeConfig) -> bool:
    """Run failed jobs again; whether all succeeded."""
    from condense_once.studies.stored_studies import retry_failures

    with track_study("retry") as report:
        return retry_failures(
            store,
            engine=engine,
            address=address,
            workers=workers,
            compute=compute,
            progress=report,
            notify=lambda sentence: note([sentence]),
        )


def _row(status: StudyStatus) -> dict[str, object]:
    from condense_once.train.hardware import cores

    row: dict[str, object] = {"study": status.study, "sets": " ".join(status.sets), "protocol": status.protocol}
    if status.error is not None:
        return row
    seconds = status.seconds_left or 0.0
    time_left = human_time(seconds / cores()) if seconds else "0 s"
    return {**row, **{name: getattr(status, name) for name in COUNTS}, "time left": time_left}
