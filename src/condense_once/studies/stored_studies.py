"""All studies of a store: how far each is, and running again what failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from condense_once.errors import BadOption, CondenseOnceError
from condense_once.studies.engines import EngineName, EngineOptions
from condense_once.studies.failures import describe_damage, describe_failures
from condense_once.studies.grid import StudyInput
from condense_once.studies.inputs import open_inputs
from condense_once.studies.progress import StudyProgress, estimate_seconds
from condense_once.studies.run import run_with
from condense_once.studies.state import study_state
from condense_once.studies.store import Store
from condense_once.studies.study import RENAMED, Study
from condense_once.text import plural
from condense_once.train.compute_config import ComputeConfig

UNNAMED = "A study without a name"  # its row lost even its key
DAMAGED = "its description in the store is damaged; run the study again to restore it."


@dataclass(frozen=True)
class StudyStatus:
    """How far a study is. Where it cannot be opened, `error` says why, and there are no counts."""

    study: str
    sets: tuple[str, ...]
    protocol: str
    variant: str = ""  # what tells it from another study of the same name, sets and protocol
    runs: int | None = None
    done: int | None = None
    missing: int | None = None
    failed: int | None = None
    seconds_left: float | None = None  # of one process
    failures: tuple[str, ...] = ()  # one sentence per reason
    damage: tuple[str, ...] = ()  # one sentence per kind of damaged row
    error: str | None = None


def study_statuses(path: Path) -> list[StudyStatus]:
    """How far every study of a store is, in the order of their last runs. The store may be read-only."""
    with closing(_open_store(path, readonly=True)) as store:
        specs = _specs(store)
        statuses = [
            replace(_status(spec, store), variant=variant)
            for spec, variant in zip(specs, _variants(specs), strict=True)
        ]
        lost = [key for key, table in store.damaged.items() if table == "studies"]
        return [*statuses, *(StudyStatus(UNNAMED if key == "None" else key, (), "", error=DAMAGED) for key in lost)]


def retry_failures(
    path: Path,
    *,
    engine: EngineName = "local",
    address: str | None = None,
    workers: int | None = None,
    compute: ComputeConfig | None = None,
    progress: Callable[[StudyProgress], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> bool:
    """Run the failed runs of every study in a store again, and nothing else; whether all succeeded."""
    notify, succeeded = notify or (lambda _: None), True
    options = EngineOptions(engine, address, workers, compute or ComputeConfig())
    with closing(_open_store(path)) as store:
        for spec in _specs(store):
            try:
                study, inputs, notes = _open(spec)
            except CondenseOnceError as error:
                notify(f"{spec['study']['name']} cannot be retried: {error}")
                succeeded = False
                continue
            state = study_state(study, inputs, store)
            if not state.failed:
                continue
            for note in (
                *notes,
                f"{study.name}: retrying {state.failed} of {plural(state.total, 'run')}, which failed.",
            ):
                notify(note)
            store.forget_errors(state.failed_keys)
            run_with(options, study, inputs, store, among=state.failed_cells, progress=progress, notify=notify)
            succeeded = succeeded and not study_state(study, inputs, store).failed
    return succeeded


def _open_store(path: Path, *, readonly: bool = False) -> Store:
    if not path.exists():
        raise BadOption(f"There is no store {path}; run a study first, or choose another `store`.")
    return Store(path, readonly=readonly)


def _specs(store: Store) -> list[dict[str, Any]]:
    specs = store.study_specs()
    if not specs and not store.damaged:
        raise BadOption(f"There are no studies in {store.path}; run one first.")
    return specs


def _open(spec: Mapping[str, Any]) -> tuple[Study, dict[str, StudyInput], list[str]]:
    study = Study.of_spec(spec["study"])
    return study, *open_inputs(study, None if spec["home"] is None else Path(spec["home"]))


def _variants(specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each study, the fields in which those of the same name, sets and protocol differ.

    >>> same = {"name": "mine", "sets": ["a"], "protocol": "quick"}
    >>> _variants([{"study": {**same, "repeats": 3}}, {"study": {**same, "repeats": 9}}, {"study": {**same, "name": "other"}}])
    ['repeats 3', 'repeats 9', '']
    """
    written = [json.dumps([spec["study"][name] for name in ("name", "sets", "protocol")]) for spec in specs]
    variants = []
    for own, place in zip(specs, written, strict=True):
        alike = [spec["study"] for spec, other in zip(specs, written, strict=True) if other == place]
        fields = own["study"]
        differ = [name for name in fields if any(other.get(name) != fields[name] for other in alike)]
        variants.append(", ".join(f"{RENAMED.get(name, name)} {_joined(fields[name])}" for name in differ))
    return variants


def _joined(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _status(spec: Mapping[str, Any], store: Store) -> StudyStatus:
    fields = spec["study"]
    named: dict[str, Any] = {
        "study": fields["name"],
        "sets": tuple(fields["sets"]),
        "protocol": fields["protocol"],
    }
    try:
        study, inputs, _ = _open(spec)
        state = study_state(study, inputs, store)
        seconds = estimate_seconds(study, inputs, state, store)
    except CondenseOnceError as error:
        return StudyStatus(**named, error=str(error))
    return StudyStatus(
        **named,
        runs=state.total,
        done=state.done,
        missing=state.missing,
        failed=state.failed,
        seconds_left=seconds,
        failures=tuple(describe_failures(state)),
        damage=tuple(describe_damage(state)),
    )
