"""The experts of a condensing run as its first work items: a batch each, resumed from what is on disk."""

from __future__ import annotations

from pathlib import Path

from condense_once.condensing.experts.config import ExpertConfig
from condense_once.condensing.experts.run import ExpertRun
from condense_once.condensing.experts.trajectory import Trajectory
from condense_once.data.source import Source
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import TrainingData


class ExpertPhase:
    """So many experts of a config, trained one after the other."""

    def __init__(
        self,
        source: Source,
        data: TrainingData,
        config: ExpertConfig,
        runs: int,
        *,
        root: Path | None,
        compute: ComputeConfig,
        writes: bool = True,
    ) -> None:
        """`data` are the training images of `source`; `root` is the folder of all experts."""
        self.folder = config.folder(source, root)
        self._runs = [ExpertRun(source, data, config, run, self.folder, compute, writes=writes) for run in range(runs)]

    @property
    def items(self) -> int:
        """Work items, done or not."""
        return sum(run.batches for run in self._runs)

    @property
    def done(self) -> int:
        """Work items done; of an unfinished run, up to the last one saved."""
        return sum(run.batches if run.is_finished else run.done for run in self._runs)

    @property
    def missing(self) -> int:
        """Batches that are not on disk."""
        return sum(run.missing for run in self._runs)

    @property
    def trajectories(self) -> list[Trajectory]:
        return [run.trajectory for run in self._runs]

    def restore(self) -> None:
        """Continue from what is on disk."""
        for run in self._runs:
            run.restore()

    def start(self) -> None:
        """Start from random weights, whatever is on disk."""
        for run in self._runs:
            run.start()

    def advance(self) -> None:
        """Train the first unfinished expert on its next batch."""
        next(run for run in self._runs if not run.is_finished).advance()
