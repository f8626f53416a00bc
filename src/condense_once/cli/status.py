"""`study status` and `study retry`: all studies of a store together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condense_once.cli.measuring import Where, measure
from condense_once.cli.printing import note, print_json, print_rows
from condense_once.errors import BadOption, CondenseOnceError
from condense_once.text import human_time

if TYPE_CHECKING:
    from condense_once.studies.grid import Subject
    from condense_once.studies.store import Store
    from condense_once.studies.study import Study

COLUMNS = ("study", "sets", "protocol", "trainings", "done", "missing", "failed", "time left")


def look_at_all(path: Path, where: Where | None, *, as_json: bool) -> bool:
    """Show how far the studies of a store are, after trying again what failed if it is said where; whether that went well."""
    from condense_once.studies.store import Store

    if not path.exists():
        raise BadOption(f"There is no store {path}; begin one with: condense-once study table1 --store {path}")
    if where is not None:
        where.check()
    store = Store(path)
    well = where is None or retry(store, where)
    show_status(store, as_json=as_json)
    return well


def show_status(store: Store, *, as_json: bool) -> None:
    """How far the studies of a store are; one that cannot be opened is no reason not to tell of the others."""
    rows = []
    for spec in _specs(store):
        said = spec["study"]
        row = {"study": said["name"], "sets": " ".join(said["sets"]), "protocol": said["protocol"]}
        try:
            study, subjects, _ = _opened(spec)
            rows.append({**row, **_how_far(study, subjects, store)})
        except CondenseOnceError as error:
            note([f"{said['name']} cannot be looked at: {error}"])
            rows.append(row)
    if as_json:
        print_json(rows)
    else:
        print_rows(COLUMNS, [[row.get(column, "–") for column in COLUMNS] for row in rows])


def retry(store: Store, where: Where) -> bool:
    """Run what failed, and nothing else; returns whether all studies could be opened and nothing fails any more."""
    from condense_once.studies.progress import standing

    well = True
    for spec in _specs(store):
        try:
            study, subjects, notes = _opened(spec)
        except CondenseOnceError as error:
            note([f"{spec['study']['name']} cannot be tried again: {error}"])
            well = False
            continue
        found = standing(study, subjects, store)
        if not found.failed:
            continue
        note([*notes, f"{study.name}: what failed is tried again, {found.failed} of {found.total}."])
        store.forget_errors(found.failed_keys)
        measure(study, subjects, store, where, found.failed_cells)
        well = well and not standing(study, subjects, store).failures
    return well


def _specs(store: Store) -> list[dict[str, Any]]:
    specs = store.studies()
    if not specs:
        raise BadOption(f"There are no studies in {store.path}; begin with: condense-once study table1.")
    return specs


def _opened(spec: Mapping[str, Any]) -> tuple[Study, dict[str, Subject], list[str]]:
    from condense_once.studies.inputs import open_subjects
    from condense_once.studies.study import Study

    study = Study.of_spec(spec["study"])
    return study, *open_subjects(study, None if spec["home"] is None else Path(spec["home"]))


def _how_far(study: Study, subjects: Mapping[str, Subject], store: Store) -> dict[str, object]:
    from condense_once.studies.progress import standing
    from condense_once.train.hardware import cores

    found = standing(study, subjects, store)
    note(f"{study.name}: {complaint}" for complaint in found.complaints())
    return {
        "trainings": found.total,
        "done": found.done,
        "missing": found.missing,
        "failed": found.failed,
        "time left": human_time(found.seconds_left / cores()) if found.seconds_left else "0 s",
    }
