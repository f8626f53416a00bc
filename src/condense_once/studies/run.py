"""Run a study: open its inputs, run what is missing, and return its table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from os import PathLike
from pathlib import Path

from condense_once.data.catalogue import SOURCES
from condense_once.errors import BadOption
from condense_once.studies.engines import EngineName, EngineOptions
from condense_once.studies.failures import describe_damage, describe_failures
from condense_once.studies.grid import StudyInput, computed_in, key_of
from condense_once.studies.inputs import open_inputs
from condense_once.studies.local_engine import LocalEngine
from condense_once.studies.make_table import make_table
from condense_once.studies.metric_requirements import requirements_table
from condense_once.studies.progress import StudyProgress, estimate_seconds
from condense_once.studies.result import StudyResult
from condense_once.studies.scheduler import run_missing
from condense_once.studies.state import CellState, StudyState, study_state
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.studies.study_file import find_study
from condense_once.text import human_time, plural
from condense_once.train.compute_config import ComputeConfig

STORE = "studies.sqlite"


def run_study(
    study: Study | str | Path,
    *,
    store: str | PathLike[str] = STORE,
    engine: EngineName = "local",
    address: str | None = None,
    workers: int | None = None,
    compute: ComputeConfig | None = None,
    data_dir: Path | None = None,
    progress: Callable[[StudyProgress], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> StudyResult:
    """Run what is missing of a study, given itself, by name or as a TOML file, and return its table.

    Results are kept in the file `store`; stop at any time, and call again to resume. Failed runs are recorded there, too,
    and the rest goes on. `engine` is `local`, with `workers` processes, or `ray`, a cluster at `address`. `data_dir` is the
    folder of downloaded sources. `progress` is called about once a second, `notify` with remarks before anything runs.

        study = Study("mine", "two rules", rules=("yoco", "random"), sizes=("1",), protocol="quick", repeats=2)
        table = run_study(study, store="studies.sqlite")
        print(table)
        table.save("table.md")
    """
    compute, notify = compute or ComputeConfig(), notify or (lambda _: None)
    options = EngineOptions(engine, address, workers or compute.workers, compute)
    chosen = prepare_study(study, compute)
    if chosen.shown == "requirements":
        return StudyResult(chosen, requirements_table(chosen.title))
    inputs, notes = open_inputs(chosen, data_dir, notify)
    with closing(Store(Path(store))) as opened:
        for note in notes:
            notify(note)
        _remember(chosen, inputs, opened)
        states = run_with(options, chosen, inputs, opened, progress=progress, notify=notify)
        failures = tuple(describe_failures(study_state(chosen, inputs, opened)))
    return StudyResult(chosen, make_table(chosen, states), tuple(states), failures, inputs, Path(store))


def prepare_study(study: Study | str | Path, compute: ComputeConfig) -> Study:
    """A study given itself, by name or as a TOML file, with the precision that its networks compute in."""
    chosen = study if isinstance(study, Study) else find_study(str(study))
    if chosen.shown == "table" and not chosen.sizes:
        raise BadOption(f"The study {chosen.name} has no sizes, so there is nothing to evaluate; name some.")
    wanted = chosen.precision if compute.precision == "auto" else compute.precision
    return chosen.replace(precision=computed_in(wanted, compute.device))


def run_with(
    options: EngineOptions,
    study: Study,
    inputs: Mapping[str, StudyInput],
    store: Store,
    *,
    among: Collection[str] | None = None,
    progress: Callable[[StudyProgress], None] | None = None,
    notify: Callable[[str], None],
) -> list[CellState]:
    """Run what is missing, or of it the cells with the keys `among`; an engine is started only if something is."""
    state = study_state(study, inputs, store, among)
    for damage in describe_damage(state):
        notify(damage)
    seconds = estimate_seconds(study, inputs, state, store)
    with closing(options.start(inputs) if seconds else LocalEngine([], options.compute)) as engine:
        if seconds:
            notify(_announcement(state, store, seconds / engine.slots))
        return run_missing(study, inputs, store, engine, among=among, progress=progress)


def _announcement(state: StudyState, store: Store, seconds: float) -> str:
    time = human_time(seconds)
    if not state.cells:
        return f"One scoring run per set, about {time}."
    known = f"{state.done} known from {store.path}, {state.failed} failed"
    return f"{plural(state.total, 'run')}: {known}, {state.missing} to run, about {time}."


def _remember(study: Study, inputs: Mapping[str, StudyInput], store: Store) -> None:
    """Record the study in the store, with absolute paths, so that it can be opened from any folder."""
    absolute = study.replace(
        sets=tuple(map(_absolute, study.sets)),
        ceiling=tuple(map(_absolute, study.ceiling)),
        test=None if study.test is None or study.test in SOURCES else _absolute(study.test),
    )
    data_dir = next(iter(inputs.values())).data_dir
    spec = {"study": absolute.spec, "home": None if data_dir is None else str(data_dir.resolve())}
    store.add_study(key_of(spec), spec)


def _absolute(spec: str) -> str:
    """An absolute path; names stay names."""
    return str(Path(spec).resolve()) if Path(spec).exists() else spec
