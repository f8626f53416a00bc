"""`study status` and `study retry`: all studies of a store together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condense_once.cli.measuring import Where, measure, subjects_of
from condense_once.cli.printing import human_time, note, print_json, print_rows
from condense_once.errors import BadOption, CondenseOnceError

if TYPE_CHECKING:
    from condense_once.studies.grid import Subject
    from condense_once.studies.store import Store
    from condense_once.studies.study import Study

COLUMNS = ("study", "sets", "protocol", "trainings", "done", "missing", "failed", "time left")


def show_status(store: Store, *, as_json: bool) -> None:
    """How far the studies of a store are; one that cannot be opened is no reason not to tell of the others."""
    rows = []
    for spec in _specs(store):
        said = spec["study"]
        row = {"study": said["name"], "sets": " ".join(said["sets"]), "protocol": said["protocol"]}
        try:
            rows.append({**row, **_how_far(*_opened(spec), store)})
        except CondenseOnceError as error:
            note([f"{said['name']} cannot be looked at: {error}"])
            rows.append(row)
    if as_json:
        print_json(rows)
    else:
        print_rows(COLUMNS, [[row.get(column, "–") for column in COLUMNS] for row in rows])


def retry(store: Store, where: Where) -> None:
    """Run what failed, and nothing else."""
    from condense_once.studies.standing import standing

    found = [(*pair, set(standing(*pair, store).failures)) for pair in _all_that_open(store)]
    store.forget_errors()
    for study, subjects, failed in found:
        if failed:
            note([f"{study.name}: {len(failed)} trainings that failed are tried again."])
            measure(study, subjects, store, where, failed)


def _specs(store: Store) -> list[dict[str, Any]]:
    specs = store.studies()
    if not specs:
        raise BadOption(f"There are no studies in {store.path}; begin with: condense-once study table1.")
    return specs


def _opened(spec: Mapping[str, Any]) -> tuple[Study, dict[str, Subject]]:
    from condense_once.studies.study import Study

    study = Study.of_spec(spec["study"])
    return study, subjects_of(study, None if spec["home"] is None else Path(spec["home"]))


def _all_that_open(store: Store) -> Iterator[tuple[Study, dict[str, Subject]]]:
    for spec in _specs(store):
        try:
            yield _opened(spec)
        except CondenseOnceError as error:
            note([f"{spec['study']['name']} cannot be tried again: {error}"])


def _how_far(study: Study, subjects: Mapping[str, Subject], store: Store) -> dict[str, object]:
    from condense_once.studies.standing import standing
    from condense_once.train.hardware import cores

    found = standing(study, subjects, store)
    return {
        "trainings": len(found.states),
        "done": found.done,
        "missing": found.missing,
        "failed": found.failed,
        "time left": human_time(found.seconds_left / cores()) if found.seconds_left else "0 s",
    }
