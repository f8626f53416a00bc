"""What experts cost, before they are trained: time from a few batches, bytes from the shapes of the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from condense_once.condensing.distributed import refuse_processes
from condense_once.condensing.experts.config import ExpertConfig
from condense_once.condensing.experts.run import ONE_PROCESS, ExpertRun, find_run
from condense_once.condensing.experts.trajectory import snapshot_bytes
from condense_once.condensing.item_timing import sample_times
from condense_once.data.source import Source
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import training_data


@dataclass(frozen=True)
class ExpertEstimate:
    """The cost of the runs that are missing."""

    folder: Path
    missing: int  # runs that are not finished
    seconds: float  # of training what is left of them, with as many runs in parallel as there are cores
    bytes: int  # on disk, of all runs


def estimate_experts(
    source: Source,
    config: ExpertConfig,
    *,
    runs: int,
    root: Path | None = None,
    compute: ComputeConfig | None = None,
) -> ExpertEstimate:
    """Time a few batches of the real size; nothing is written."""
    refuse_processes(ONE_PROCESS)
    compute, folder, data = compute or ComputeConfig(), config.folder(source, root), training_data(source)
    found = [find_run(source, config, folder, run) for run in range(runs)]
    epochs = [config.recipe.epochs - (run.epochs if run is not None else 0) for run in found]
    left = [each for each in epochs if each]
    trial = ExpertRun(source, data, config, 0, folder, compute, writes=False)
    trial.start()
    batch = median(sample_times(trial.advance, compiles=True)) if left else 0.0
    in_parallel = math.ceil(len(left) / compute.parallel_runs(max(len(left), 1)))
    seconds = in_parallel * max(left, default=0) * trial.batches / config.recipe.epochs * batch
    return ExpertEstimate(folder, len(left), seconds, runs * config.snapshots * snapshot_bytes(trial.net))
