"""`study status` and `study retry`: all studies of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from condense_once.cli.printing import note, print_json, print_rows
from condense_once.cli.study_progress import track_study
from condense_once.text import human_time

if TYPE_CHECKING:
    from condense_once.studies.engines import EngineName
    from condense_once.studies.stored_studies import StudyStatus
    from condense_once.train.compute_config import ComputeConfig

COUNTS = ("runs", "done", "missing", "failed")
COLUMNS = ("study", "sets", "protocol", *COUNTS, "time left")


def show_status(store: Path, *, as_json: bool) -> None:
    """Print the progress of each study; one that cannot be opened does not hide the others."""
    from condense_once.studies.stored_studies import study_statuses

    statuses = study_statuses(store)
    for status in statuses:
        if status.error is not None:
            note([f"{status.study} cannot be opened: {status.error}"])
        note(f"{_named(status)}: {sentence}" for sentence in (*status.failures, *status.damage))
    rows = [_row(status) for status in statuses]
    if as_json:
        print_json({"store": store, "studies": rows})
        return
    shown = _short_names(name for status in statuses for name in status.sets)
    for row, status in zip(rows, statuses, strict=True):
        row |= {"study": _named(status), "sets": " ".join(shown[name] for name in status.sets) or "–"}
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


def _named(status: StudyStatus) -> str:
    """Its name, and what tells it from another of the same name."""
    return f"{status.study} ({status.variant})" if status.variant else status.study


def _short_names(sets: Iterable[str]) -> dict[str, str]:
    """File names for paths, unless two files of different folders have the same.

    >>> _short_names(["/a/x.safetensors", "/b/x.safetensors", "/b/y.safetensors"])["/b/y.safetensors"]
    'y.safetensors'
    """
    distinct = dict.fromkeys(sets)
    counts = Counter(Path(name).name for name in distinct)
    return {name: Path(name).name if counts[Path(name).name] == 1 else name for name in distinct}


def _row(status: StudyStatus) -> dict[str, object]:
    from condense_once.train.compute_config import cores

    row: dict[str, object] = {
        "study": status.study,
        "variant": status.variant,
        "sets": " ".join(status.sets),
        "protocol": status.protocol,
    }
    if status.error is not None:
        return row
    seconds = status.seconds_left or 0.0
    time_left = human_time(seconds / cores()) if seconds else "0 s"
    return {**row, **{name: getattr(status, name) for name in COUNTS}, "time left": time_left}
