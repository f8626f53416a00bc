"""What a study would run, and how long that takes, without running it."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from condense_once.studies.engines import EngineOptions
from condense_once.studies.failures import describe_damage
from condense_once.studies.inputs import open_inputs
from condense_once.studies.progress import estimate_seconds, missing_jobs
from condense_once.studies.run import STORE, prepare_study
from condense_once.studies.state import study_state
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.compute_config import ComputeConfig, cores

NO_STORE = Path(":memory:")  # sqlite's name for an empty database that is no file


@dataclass(frozen=True)
class StudyPlan:
    study: str
    runs: int  # cells of the grid, or scoring runs of a study that evaluates nothing
    done: int  # of them, known from the store
    failed: int
    missing: int
    evaluations: int  # to run; cells that keep the same patches share one, as far as that is known before
    scoring_runs: int  # to run
    slimmings: int  # to run
    processes: int  # jobs at a time
    seconds: float  # by that many processes
    notes: tuple[str, ...]  # on the inputs and on damage in the store


def plan_study(
    study: Study | str | Path,
    *,
    store: str | PathLike[str] = STORE,
    workers: int | None = None,
    compute: ComputeConfig | None = None,
    data_dir: Path | None = None,
) -> StudyPlan:
    """What `run_study` with the same arguments would run. The store is only read, and need not exist."""
    compute = compute or ComputeConfig()
    EngineOptions(workers=workers, compute=compute)  # refuses what cannot run
    chosen = prepare_study(study, compute)
    processes = workers or compute.workers or (cores() if compute.device == "cpu" else 1)
    if chosen.shown == "requirements":
        return StudyPlan(chosen.name, 0, 0, 0, 0, 0, 0, 0, processes, 0.0, ())
    inputs, notes = open_inputs(chosen, data_dir)
    path = Path(store)
    with closing(Store(path, readonly=True) if path.exists() else Store(NO_STORE)) as opened:
        state = study_state(chosen, inputs, opened)
        jobs = missing_jobs(state, opened).values()
        seconds = estimate_seconds(chosen, inputs, state, opened)
    counts = Counter(job.kind for job in jobs)
    return StudyPlan(
        study=chosen.name,
        runs=state.total,
        done=state.done,
        failed=state.failed,
        missing=state.missing,
        evaluations=counts["evaluation"],
        scoring_runs=counts["scoring run"],
        slimmings=counts["slimming"],
        processes=processes,
        seconds=seconds / max(1, min(processes, len(jobs))),
        notes=(*notes, *describe_damage(state)),
    )
